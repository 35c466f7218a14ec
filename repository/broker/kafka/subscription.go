package kafka

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"seckill/service/outbox"
)

// subscription is one member of a consumer group.
type subscription struct {
	*Broker
	group      string
	client     *kgo.Client
	dispatcher *outbox.Dispatcher
	slots      chan struct{} // one element for each event that the subscription holds
	offsets    *offsets
}

// Subscribe joins the group as a new member. A new group starts with the oldest event that Kafka has.
func (b *Broker) Subscribe(ctx context.Context, group string, handle outbox.Handler) error {
	return b.base.Subscribe(ctx, func(ctx context.Context) error {
		log := b.opts.Log.With("group", group)
		if !(outbox.Backoff{}).Retry(ctx, b.ensureTopic, func(err error) {
			log.Warn("kafka: creating the topic failed; trying again", "error", err)
		}) {
			return nil
		}
		client, err := b.newClient(
			kgo.ConsumerGroup(b.opts.Topic+"."+group), kgo.ConsumeTopics(b.opts.Topic),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
			kgo.AutoCommitMarks(), kgo.AutoCommitInterval(500*time.Millisecond),
			kgo.SessionTimeout(10*time.Second), // the partitions of a member that died are idle for as long
		)
		if err != nil {
			return err
		}
		s := &subscription{Broker: b, group: group, client: client, slots: make(chan struct{}, prefetch), offsets: newOffsets()}
		s.dispatcher = outbox.StartDispatcher(ctx, outbox.DispatcherConfig{Queue: prefetch}, s.withDeadLetters(handle))
		(outbox.Backoff{}).Retry(ctx, s.poll, func(err error) {
			log.Warn("kafka: reading failed; trying again", "error", err)
		})
		s.dispatcher.Stop()
		s.leave()
		return nil
	})
}

// poll reads events until that fails or ctx ends. The client reconnects on its own.
func (s *subscription) poll(ctx context.Context) error {
	for {
		fetches := s.client.PollRecords(ctx, 500)
		if ctx.Err() != nil {
			return nil
		}
		fetches.EachRecord(func(r *kgo.Record) { s.deliver(ctx, r) })
		if err := fetches.Err(); err != nil {
			return err
		}
	}
}

func (s *subscription) deliver(ctx context.Context, r *kgo.Record) {
	select {
	case s.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	s.offsets.add(r)
	e, err := parse(r)
	if err != nil {
		e = outbox.Event{Type: notAnEvent, Payload: r.Value}
	}
	err = s.dispatcher.Deliver(ctx, e, func(err error) {
		if err == nil {
			s.offsets.handled(r, s.client.MarkCommitOffsets)
		}
		<-s.slots
	})
	if err != nil {
		<-s.slots
	}
}

// notAnEvent is the type that stands for a record that cannot be parsed; no event has it.
const notAnEvent = ""

// withDeadLetters moves events that the handler gives up to the dead letters. If that fails the event is handled again,
// because it must not be lost.
func (s *subscription) withDeadLetters(handle outbox.Handler) outbox.Handler {
	return func(ctx context.Context, e outbox.Event) error {
		err := outbox.ErrPoison
		if e.Type != notAnEvent {
			err = handle(ctx, e)
		}
		if !errors.Is(err, outbox.ErrPoison) {
			return err
		}
		s.opts.Log.Error("kafka: a consumer gave up an event", "group", s.group, "event", e.ID, "cause", err)
		return s.addDeadLetter(ctx, e, err)
	}
}

func (s *subscription) addDeadLetter(ctx context.Context, e outbox.Event, cause error) error {
	topic := DeadTopic(s.opts.Topic, s.group)
	if err := createTopic(ctx, s.client, topic); err != nil {
		return err
	}
	r := newRecord(e)
	r.Topic = topic
	r.Headers = append(r.Headers, kgo.RecordHeader{Key: "error", Value: []byte(cause.Error())})
	return s.client.ProduceSync(ctx, r).FirstErr()
}

// DeadTopic returns the topic of a group's dead letters: the events with the error as an additional header.
func DeadTopic(topic, group string) string { return topic + "." + group + ".dead" }

// leave commits the offsets of handled events and leaves the group, so that other members need not wait for the session
// to expire.
func (s *subscription) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := s.client.CommitMarkedOffsets(ctx); err != nil {
		s.opts.Log.Warn("kafka: committing failed; handled events will be delivered again", "group", s.group, "error", err)
	}
	_ = s.client.LeaveGroupContext(ctx) // otherwise the session expires
	s.client.CloseAllowingRebalance()
}

// offsets tracks which events of each partition are handled. Events finish in any order, but Kafka stores one offset for
// each partition, below which every event must be handled.
type offsets struct {
	mu         sync.Mutex
	partitions map[int32]*partition
}

// partition holds the events of one partition that are not committed yet, oldest first.
type partition struct {
	epoch  int32
	events []tracked
}

type tracked struct {
	offset int64
	done   bool
}

func newOffsets() *offsets { return &offsets{partitions: map[int32]*partition{}} }

// add tracks an event that was read. An offset that is not higher than the last one means that the partition was assigned
// to another member in between: the older events belong to that member now, or are read again.
func (o *offsets) add(r *kgo.Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.partitions[r.Partition]
	if p == nil || len(p.events) > 0 && r.Offset <= p.events[len(p.events)-1].offset {
		p = &partition{}
		o.partitions[r.Partition] = p
	}
	p.epoch = r.LeaderEpoch
	p.events = append(p.events, tracked{offset: r.Offset})
}

// handled records that an event is done, and marks the partition's offset up to the oldest event that is not.
func (o *offsets) handled(r *kgo.Record, mark func(map[string]map[int32]kgo.EpochOffset)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	p := o.partitions[r.Partition]
	if p == nil {
		return
	}
	for i := range p.events {
		if p.events[i].offset == r.Offset {
			p.events[i].done = true
			break
		}
	}
	next := int64(-1)
	for len(p.events) > 0 && p.events[0].done {
		next = p.events[0].offset + 1
		p.events = p.events[1:]
	}
	if next >= 0 {
		mark(map[string]map[int32]kgo.EpochOffset{r.Topic: {r.Partition: {Epoch: p.epoch, Offset: next}}})
	}
}
