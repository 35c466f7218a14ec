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

// readCount is how many entries are read at a time, readBlock how long a read waits for the first of them.
const (
	readCount = 100
	readBlock = time.Second
)

// subscription is one consumer of a group.
type subscription struct {
	*Broker
	group    string
	consumer string
	lanes    *outbox.Lanes
	room     chan struct{} // a token for each entry that may be held
	acks     chan string

	mu   sync.Mutex
	held map[string]bool // entries that are with the lanes
}

// Subscribe reads the stream as a new consumer of the group.
func (b *Broker) Subscribe(ctx context.Context, group string, handle outbox.Handler) error {
	if err := b.life.Err(); err != nil {
		return err
	}
	ctx, cancel := b.life.Bind(ctx)
	defer cancel()
	s := &subscription{
		Broker: b, group: group, consumer: rand.Text(), held: map[string]bool{},
		room: make(chan struct{}, b.opts.Prefetch), acks: make(chan string, b.opts.Prefetch),
		lanes: outbox.StartLanes(ctx, outbox.LanesConfig{Workers: b.opts.Workers, Queue: b.opts.Prefetch}, handle),
	}
	var acking sync.WaitGroup
	acking.Go(s.acknowledge)
	s.read(ctx)
	s.lanes.Stop()
	close(s.acks)
	acking.Wait()
	s.retire()
	return b.life.Err()
}

// read reads until ctx ends, whatever fails.
func (s *subscription) read(ctx context.Context) {
	failures := 0
	var claimed, trimmed time.Time
	for ctx.Err() == nil {
		err := s.next(ctx)
		if err == nil && time.Since(claimed) > s.opts.ClaimAfter/2 {
			claimed = time.Now()
			err = s.claim(ctx)
		}
		if err == nil && time.Since(trimmed) > s.opts.TrimEvery {
			trimmed = time.Now()
			err = s.trim(ctx)
		}
		if err == nil || ctx.Err() != nil {
			failures = 0
			continue
		}
		if redis.HasErrorPrefix(err, "NOGROUP") { // nobody has published yet, or Redis has lost its memory
			if err = s.create(ctx, s.group); err == nil {
				continue
			}
		}
		failures++
		s.opts.Log.Warn("redisstream: reading failed; trying again", "group", s.group, "error", err)
		outbox.Pause{}.Wait(ctx, failures)
	}
}

// next reads entries that no consumer of the group has had.
func (s *subscription) next(ctx context.Context) error {
	n := s.reserve(ctx)
	if n == 0 {
		return nil
	}
	streams, err := s.client.XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: s.group, Consumer: s.consumer, Streams: []string{s.opts.Stream, ">"}, Count: int64(n), Block: readBlock,
	}).Result()
	var messages []redis.XMessage
	if err == nil && len(streams) > 0 {
		messages = streams[0].Messages
	}
	for range n - len(messages) {
		<-s.room
	}
	if err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	s.deliver(ctx, messages)
	return nil
}

// reserve takes room for up to readCount entries; it waits for the first. 0: ctx has ended.
func (s *subscription) reserve(ctx context.Context) int {
	select {
	case s.room <- struct{}{}:
	case <-ctx.Done():
		return 0
	}
	for n := 1; n < readCount; n++ {
		select {
		case s.room <- struct{}{}:
		default:
			return n
		}
	}
	return readCount
}

// claim takes over entries that their consumers have not acknowledged for too long.
func (s *subscription) claim(ctx context.Context) error {
	start := "0"
	for {
		n := s.reserve(ctx)
		if n == 0 {
			return nil
		}
		messages, next, err := s.client.XAutoClaim(ctx, &redis.XAutoClaimArgs{
			Stream: s.opts.Stream, Group: s.group, Consumer: s.consumer, MinIdle: s.opts.ClaimAfter, Start: start, Count: int64(n),
		}).Result()
		for range n - len(messages) {
			<-s.room
		}
		if err != nil {
			return err
		}
		s.deliver(ctx, messages)
		if next == "0-0" || ctx.Err() != nil {
			return nil
		}
		start = next
	}
}

// deliver hands entries to the lanes. Room was taken for each of them.
func (s *subscription) deliver(ctx context.Context, messages []redis.XMessage) {
	for _, m := range messages {
		if !s.hold(m.ID) { // claimed from ourselves: it is still being handled
			<-s.room
			continue
		}
		e, err := parse(m)
		if err != nil {
			s.settle(m, err)
			continue
		}
		if err := s.lanes.Deliver(ctx, e, func(err error) { s.settle(m, err) }); err != nil {
			s.settle(m, err)
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

// settle acknowledges an entry that was handled or given up. Another one stays pending, for whoever claims it.
func (s *subscription) settle(m redis.XMessage, err error) {
	switch {
	case err == nil:
		s.acks <- m.ID // as large as what can be held, so it does not block
	case errors.Is(err, outbox.ErrPoison):
		s.bury(m, err)
	}
	s.mu.Lock()
	delete(s.held, m.ID)
	s.mu.Unlock()
	<-s.room
}

// settleTimeout bounds what has to be written when a subscription may have ended.
const settleTimeout = 2 * time.Second

// bury moves an entry to the dead letters. If that fails it stays pending.
func (s *subscription) bury(m redis.XMessage, cause error) {
	ctx, cancel := context.WithTimeout(context.Background(), settleTimeout)
	defer cancel()
	dead := make([]any, 0, 2*len(m.Values)+2)
	for name, value := range m.Values {
		dead = append(dead, name, value)
	}
	err := s.client.XAdd(ctx, &redis.XAddArgs{
		Stream: DeadStream(s.opts.Stream, s.group), Values: append(dead, "error", cause.Error()),
	}).Err()
	if err == nil {
		err = s.client.XAck(ctx, s.opts.Stream, s.group, m.ID).Err()
	}
	s.opts.Log.Error("redisstream: a consumer gave an event up", "group", s.group, "entry", m.ID, "cause", cause, "error", err)
}

// DeadStream names the stream of a group's dead letters: the entries as they were, and why they are there.
func DeadStream(stream, group string) string { return stream + ":dead:" + group }

// acknowledge sends acknowledgements, as many at a time as there are. One that fails leaves its entry pending, and the
// event is delivered again.
func (s *subscription) acknowledge() {
	for id := range s.acks {
		ids := []string{id}
		for more := true; more && len(ids) < readCount; {
			select {
			case id, ok := <-s.acks:
				if more = ok; ok {
					ids = append(ids, id)
				}
			default:
				more = false
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), settleTimeout)
		if err := s.client.XAck(ctx, s.opts.Stream, s.group, ids...).Err(); err != nil {
			s.opts.Log.Warn("redisstream: acknowledging failed; the events will come again", "group", s.group, "events", len(ids), "error", err)
		}
		cancel()
	}
}
