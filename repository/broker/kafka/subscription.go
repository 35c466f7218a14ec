package kafka

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"seckill/service/outbox"
)

// subscription is one member of a group.
type subscription struct {
	*Broker
	group   string
	client  *kgo.Client
	lanes   *outbox.Lanes
	room    chan struct{} // a token for each event that may be held
	offsets *offsets
}

// Subscribe joins the group as a new member. What a group has never had begins with the oldest event that Kafka keeps.
func (b *Broker) Subscribe(ctx context.Context, group string, handle outbox.Handler) error {
	if err := b.life.Err(); err != nil {
		return err
	}
	ctx, cancel := b.life.Bind(ctx)
	defer cancel()
	// Kafka itself would create the topic with as many partitions as it likes.
	for failures := 1; b.found(ctx) != nil; failures++ {
		if !(outbox.Pause{}).Wait(ctx, failures) {
			return b.life.Err()
		}
	}
	client, err := b.client(
		kgo.ConsumerGroup(b.opts.Topic+"."+group), kgo.ConsumeTopics(b.opts.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.AutoCommitMarks(), kgo.AutoCommitInterval(500*time.Millisecond),
		kgo.SessionTimeout(10*time.Second), // a member that died leaves its partitions for as long
	)
	if err != nil {
		return err
	}
	s := &subscription{Broker: b, group: group, client: client, room: make(chan struct{}, b.opts.Prefetch), offsets: newOffsets()}
	s.lanes = outbox.StartLanes(ctx, outbox.LanesConfig{Workers: b.opts.Workers, Queue: b.opts.Prefetch}, s.orBury(handle))
	s.poll(ctx)
	s.lanes.Stop()
	s.leave()
	return b.life.Err()
}

// poll reads until ctx ends. The client connects again by itself.
func (s *subscription) poll(ctx context.Context) {
	for failures := 0; ; {
		fetches := s.client.PollRecords(ctx, 500)
		if ctx.Err() != nil {
			return
		}
		failed := false
		fetches.EachError(func(_ string, partition int32, err error) {
			failed = true
			s.opts.Log.Warn("kafka: reading failed; trying again", "group", s.group, "partition", partition, "error", err)
		})
		fetches.EachRecord(func(r *kgo.Record) { s.deliver(ctx, r) })
		if failures++; !failed {
			failures = 0
		} else if !(outbox.Pause{}).Wait(ctx, failures) {
			return
		}
	}
}

func (s *subscription) deliver(ctx context.Context, r *kgo.Record) {
	select {
	case s.room <- struct{}{}:
	case <-ctx.Done():
		return
	}
	s.offsets.took(r)
	settle := func(err error) {
		if err == nil {
			s.offsets.handled(r, s.client.MarkCommitOffsets)
		}
		<-s.room
	}
	e, err := parse(r)
	if err != nil { // no event: nothing to call a handler with
		e = outbox.Event{Type: notAnEvent, Payload: r.Value}
	}
	if err := s.lanes.Deliver(ctx, e, settle); err != nil {
		<-s.room
	}
}

// notAnEvent is the type of what cannot be parsed; no event has it.
const notAnEvent = ""

// orBury writes an event that the handler gives up to the dead letters. As long as that fails the event is tried again:
// it must not be lost.
func (s *subscription) orBury(handle outbox.Handler) outbox.Handler {
	return func(ctx context.Context, e outbox.Event) error {
		err := outbox.ErrPoison
		if e.Type != notAnEvent {
			err = handle(ctx, e)
		}
		if !errors.Is(err, outbox.ErrPoison) {
			return err
		}
		s.opts.Log.Error("kafka: a consumer gave an event up", "group", s.group, "event", e.ID, "cause", err)
		return s.bury(ctx, e, err)
	}
}

func (s *subscription) bury(ctx context.Context, e outbox.Event, cause error) error {
	topic := DeadTopic(s.opts.Topic, s.group)
	if err := s.create(ctx, s.client, topic); err != nil {
		return err
	}
	dead := record(e)
	dead.Topic = topic
	dead.Headers = append(dead.Headers, kgo.RecordHeader{Key: "error", Value: []byte(cause.Error())})
	return s.client.ProduceSync(ctx, dead).FirstErr()
}

// DeadTopic names the topic of a group's dead letters: the events as they were, and why they are there.
func DeadTopic(topic, group string) string { return topic + "." + group + ".dead" }

// leave commits what was handled and leaves the group, so that others need not wait for the session to end.
func (s *subscription) leave() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := s.client.CommitMarkedOffsets(ctx); err != nil {
		s.opts.Log.Warn("kafka: committing failed; handled events will come again", "group", s.group, "error", err)
	}
	_ = s.client.LeaveGroupContext(ctx) // if that fails, the session ends by itself
	s.client.CloseAllowingRebalance()
}
