package redisstream

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/service/outbox"
)

const (
	prefetch     = 1000        // entries that a subscription holds at most
	readCount    = 100         // entries of one read
	readBlock    = time.Second // how long a read waits for the first entry
	writeTimeout = 2 * time.Second
)

// subscription is one consumer of a group.
type subscription struct {
	*Broker
	group      string
	consumer   string
	dispatcher *outbox.Dispatcher
	slots      chan struct{} // one element for each entry in held
	acks       chan string

	mu   sync.Mutex
	held map[string]bool // entries that the dispatcher has
}

// Subscribe reads the stream as a new consumer of the group.
func (b *Broker) Subscribe(ctx context.Context, group string, handle outbox.Handler) error {
	return b.base.Subscribe(ctx, func(ctx context.Context) error {
		s := &subscription{
			Broker: b, group: group, consumer: rand.Text(), held: map[string]bool{},
			slots: make(chan struct{}, prefetch), acks: make(chan string, prefetch),
			dispatcher: outbox.StartDispatcher(ctx, outbox.DispatcherConfig{Queue: prefetch}, handle),
		}
		var acking sync.WaitGroup
		acking.Go(s.acknowledge)
		outbox.Backoff{}.Retry(ctx, s.read, func(err error) {
			b.opts.Log.Warn("redisstream: reading failed; trying again", "group", group, "error", err)
		})
		s.dispatcher.Stop()
		close(s.acks)
		acking.Wait()
		s.removeConsumer()
		return nil
	})
}

// read reads entries until that fails or ctx ends. Now and then it takes over abandoned entries and trims the stream.
func (s *subscription) read(ctx context.Context) error {
	var maintained time.Time
	for ctx.Err() == nil {
		err := s.readNew(ctx)
		if err == nil && time.Since(maintained) > s.opts.ClaimAfter/2 {
			maintained = time.Now()
			if err = s.claim(ctx); err == nil {
				err = s.trim(ctx)
			}
		}
		if err != nil && redis.HasErrorPrefix(err, "NOGROUP") { // nothing was published yet, or Redis has lost its data
			err = s.createGroup(ctx, s.group)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readNew reads entries that no consumer of the group has had.
func (s *subscription) readNew(ctx context.Context) error {
	streams, err := s.client.XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: s.group, Consumer: s.consumer, Streams: []string{s.opts.Stream, ">"}, Count: readCount, Block: readBlock,
	}).Result()
	if errors.Is(err, redis.Nil) || err == nil && len(streams) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	s.deliver(ctx, streams[0].Messages)
	return nil
}

// claim takes over entries that their consumers have not acknowledged for too long.
func (s *subscription) claim(ctx context.Context) error {
	const end = "0-0"
	for next := "0"; next != end && ctx.Err() == nil; {
		var messages []redis.XMessage
		var err error
		messages, next, err = s.client.XAutoClaim(ctx, &redis.XAutoClaimArgs{
			Stream: s.opts.Stream, Group: s.group, Consumer: s.consumer, MinIdle: s.opts.ClaimAfter, Start: next, Count: readCount,
		}).Result()
		if err != nil {
			return err
		}
		s.deliver(ctx, messages)
	}
	return nil
}

// deliver passes entries to the dispatcher. It blocks while the subscription holds as many as it may.
func (s *subscription) deliver(ctx context.Context, messages []redis.XMessage) {
	for _, m := range messages {
		select {
		case s.slots <- struct{}{}:
		case <-ctx.Done():
			return // the entries stay pending
		}
		if !s.hold(m.ID) { // claimed from this consumer: it is still being handled
			<-s.slots
			continue
		}
		e, err := parse(m)
		if err == nil {
			err = s.dispatcher.Deliver(ctx, e, func(err error) { s.finish(m, err) })
		}
		if err != nil {
			s.finish(m, err)
		}
	}
}

func (s *subscription) hold(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[id] {
		return false
	}
	s.held[id] = true
	return true
}

// finish acknowledges an entry that was handled or given up. Any other entry stays pending until a consumer claims it.
func (s *subscription) finish(m redis.XMessage, err error) {
	switch {
	case err == nil:
		s.acks <- m.ID // does not block: it has room for all that is held
	case errors.Is(err, outbox.ErrPoison):
		s.addDeadLetter(m, err)
	}
	s.mu.Lock()
	delete(s.held, m.ID)
	s.mu.Unlock()
	<-s.slots
}

// addDeadLetter moves an entry to the dead letters. If that fails it stays pending.
func (s *subscription) addDeadLetter(m redis.XMessage, cause error) {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	dead := []any{"error", cause.Error()}
	for name, value := range m.Values {
		dead = append(dead, name, value)
	}
	err := s.client.XAdd(ctx, &redis.XAddArgs{Stream: DeadStream(s.opts.Stream, s.group), Values: dead}).Err()
	if err == nil {
		err = s.client.XAck(ctx, s.opts.Stream, s.group, m.ID).Err()
	}
	s.opts.Log.Error("redisstream: a consumer gave up an event", "group", s.group, "entry", m.ID, "cause", cause, "error", err)
}

// DeadStream returns the stream of a group's dead letters: the entries with the error as an additional field.
func DeadStream(stream, group string) string { return stream + ":dead:" + group }

// acknowledge sends acknowledgements in batches. If that fails the entries stay pending, and the events are delivered
// again.
func (s *subscription) acknowledge() {
	for id := range s.acks {
		ids := []string{id}
		for range min(len(s.acks), readCount-1) {
			ids = append(ids, <-s.acks) // never blocks: nothing else receives
		}
		ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
		if err := s.client.XAck(ctx, s.opts.Stream, s.group, ids...).Err(); err != nil {
			s.opts.Log.Warn("redisstream: acknowledging failed; the events will be delivered again", "group", s.group, "events", len(ids), "error", err)
		}
		cancel()
	}
}

// removeConsumer removes the consumer from its group, unless it has pending entries: they would be lost.
func (s *subscription) removeConsumer() {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	pending, err := s.client.XPendingExt(ctx, &redis.XPendingExtArgs{
		Stream: s.opts.Stream, Group: s.group, Consumer: s.consumer, Start: "-", End: "+", Count: 1,
	}).Result()
	if err == nil && len(pending) == 0 {
		_ = s.client.XGroupDelConsumer(ctx, s.opts.Stream, s.group, s.consumer).Err() // an idle consumer costs a few bytes
	}
}
