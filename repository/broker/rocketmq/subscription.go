package rocketmq

import (
	"context"
	"crypto/rand"
	"errors"
	"math"
	"sync"
	"time"

	client "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"

	"seckill/service/outbox"
)

// Subscribe consumes as a new member of the group. A new group starts with the oldest event that RocketMQ has.
func (b *Broker) Subscribe(ctx context.Context, group string, handle outbox.Handler) error {
	return b.base.Subscribe(ctx, func(ctx context.Context) error {
		s := &subscription{Broker: b, group: group, ctx: ctx, handle: handle}
		outbox.Backoff{}.Retry(ctx, s.consume, func(err error) {
			b.opts.Log.Warn("rocketmq: subscribing failed; trying again", "group", group, "error", err)
		})
		return nil
	})
}

// subscription is one member of a consumer group.
type subscription struct {
	*Broker
	group  string
	ctx    context.Context
	handle outbox.Handler

	mu      sync.Mutex
	stopped bool
	calls   int            // of handleMessage
	running sync.WaitGroup // handlers
}

// consume consumes until ctx ends. It fails if the consumer does not start, for example because RocketMQ does not know the
// topic; a started consumer reconnects on its own.
func (s *subscription) consume(ctx context.Context) error {
	c, err := client.NewPushConsumer(
		consumer.WithNsResolver(primitive.NewPassthroughResolver(s.opts.NameServers)),
		consumer.WithGroupName(s.opts.Topic+"_"+s.group),
		consumer.WithInstance(rand.Text()),
		consumer.WithConsumerModel(consumer.Clustering),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
		consumer.WithConsumeGoroutineNums(workers),
		consumer.WithConsumeMessageBatchMaxSize(1),
		// Few messages at a time, so that the client's channel of pulled messages is never full: a consumer that is shut
		// down while its client waits to send to that channel panics (process_queue.go closes it under the sender).
		consumer.WithPullBatchSize(16), consumer.WithPullThresholdForQueue(256),
		// Only an event that a handler gives up becomes a dead letter, not one that fails for hours.
		consumer.WithMaxReconsumeTimes(math.MaxInt32),
	)
	if err != nil {
		return err
	}
	if err := c.Subscribe(s.opts.Topic, consumer.MessageSelector{}, s.handleMessage); err != nil {
		return errors.Join(err, c.Shutdown())
	}
	if err := c.Start(); err != nil {
		return errors.Join(err, c.Shutdown())
	}
	<-ctx.Done()
	s.shutDown(c)
	return nil
}

// shutDown waits for the handlers, which the client does not, so that their acknowledgements are part of the offsets that
// the client stores. It then returns the messages that the client has already pulled to RocketMQ, until no more come.
func (s *subscription) shutDown(c client.PushConsumer) {
	c.Suspend()
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.running.Wait()
	const tick, quiet, longest = 100 * time.Millisecond, 4, 40 // 400 ms without a call, or 4 s
	for last, unchanged, n := -1, 0, 0; unchanged < quiet && n < longest; n++ {
		time.Sleep(tick)
		s.mu.Lock()
		if s.calls == last {
			unchanged++
		} else {
			last, unchanged = s.calls, 0
		}
		s.mu.Unlock()
	}
	if err := c.Shutdown(); err != nil {
		s.opts.Log.Warn("rocketmq: ending a subscription failed; handled events may be delivered again", "group", s.group, "error", err)
	}
}

// handleMessage handles one message, which is the size of a batch. RocketMQ delivers a message that fails again: after
// a second at first, then after growing pauses.
func (s *subscription) handleMessage(ctx context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
	if !s.begin() {
		return consumer.ConsumeRetryLater, nil
	}
	defer s.running.Done()
	m := messages[0]
	e, err := outbox.ParseEvent(m.GetProperty, m.Body)
	if err == nil {
		err = s.handle(s.ctx, e)
	}
	if err == nil {
		return consumer.ConsumeSuccess, nil
	}
	next, ok := primitive.GetConcurrentlyCtx(ctx)
	if !ok {
		return consumer.ConsumeRetryLater, nil
	}
	if errors.Is(err, outbox.ErrPoison) {
		s.opts.Log.Error("rocketmq: a consumer gave up an event", "group", s.group, "message", m.MsgId, "cause", err)
		next.DelayLevelWhenNextConsume = toDeadLetters
	} else {
		next.DelayLevelWhenNextConsume = min(1+int(m.ReconsumeTimes), longestDelay)
	}
	return consumer.ConsumeRetryLater, nil
}

// RocketMQ's default delay levels: 1 is one second, 5 is one minute; a negative one means the dead letters.
const (
	toDeadLetters = -1
	longestDelay  = 5
)

// begin registers a handler. It returns false if the subscription has ended.
func (s *subscription) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.stopped || s.ctx.Err() != nil {
		return false
	}
	s.running.Add(1)
	return true
}
