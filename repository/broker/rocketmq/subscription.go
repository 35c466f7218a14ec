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

// Subscribe consumes as a new member of the group. What a group has never had begins with the oldest event that RocketMQ
// keeps.
func (b *Broker) Subscribe(ctx context.Context, group string, handle outbox.Handler) error {
	if err := b.life.Err(); err != nil {
		return err
	}
	ctx, cancel := b.life.Bind(ctx)
	defer cancel()
	s := &subscription{Broker: b, group: group, ctx: ctx, handle: handle}
	for failures := 1; ; failures++ {
		c, err := s.start()
		if err == nil {
			<-ctx.Done()
			s.end(c)
			break
		}
		b.opts.Log.Warn("rocketmq: subscribing failed; trying again", "group", group, "error", err)
		if !(outbox.Pause{}).Wait(ctx, failures) {
			break
		}
	}
	return b.life.Err()
}

// subscription is one member of a group.
type subscription struct {
	*Broker
	group  string
	ctx    context.Context
	handle outbox.Handler

	mu      sync.Mutex
	ended   bool
	calls   int            // of consume
	running sync.WaitGroup // handlers
}

// start starts a consumer. It fails as long as the topic is not known, and connects again by itself afterwards.
func (s *subscription) start() (client.PushConsumer, error) {
	c, err := client.NewPushConsumer(
		consumer.WithNsResolver(primitive.NewPassthroughResolver(s.opts.NameServers)),
		consumer.WithGroupName(s.Broker.group(s.group)),
		consumer.WithInstance(rand.Text()),
		consumer.WithCredentials(s.credentials()),
		consumer.WithConsumerModel(consumer.Clustering),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset),
		consumer.WithConsumeGoroutineNums(s.opts.Workers),
		consumer.WithConsumeMessageBatchMaxSize(1),
		// Few at a time, so that the client's channel of what it has pulled never fills: a consumer that is shut down
		// while its client waits to send there panics (process_queue.go: the channel is closed under the sender).
		consumer.WithPullBatchSize(16), consumer.WithPullThresholdForQueue(256),
		// Only what a handler gives up is a dead letter; a database that is away for hours makes none.
		consumer.WithMaxReconsumeTimes(math.MaxInt32),
	)
	if err != nil {
		return nil, err
	}
	if err := c.Subscribe(s.opts.Topic, consumer.MessageSelector{}, s.consume); err != nil {
		return nil, errors.Join(err, c.Shutdown())
	}
	if err := c.Start(); err != nil {
		return nil, errors.Join(err, c.Shutdown())
	}
	return c, nil
}

// end shuts the consumer down and waits for its handlers, which the client does not. Before, it lets what the client
// has pulled already go back to RocketMQ, until nothing more comes.
func (s *subscription) end(c client.PushConsumer) {
	c.Suspend()
	s.mu.Lock()
	s.ended = true
	s.mu.Unlock()
	s.running.Wait()             // what they have acknowledged is part of the offsets that are stored below
	const quiet, longest = 4, 40 // tenths of a second
	for last, still, turn := -1, 0, 0; still < quiet && turn < longest; turn++ {
		time.Sleep(100 * time.Millisecond)
		s.mu.Lock()
		if s.calls == last {
			still++
		} else {
			last, still = s.calls, 0
		}
		s.mu.Unlock()
	}
	if err := c.Shutdown(); err != nil {
		s.opts.Log.Warn("rocketmq: ending a subscription failed; handled events may come again", "group", s.group, "error", err)
	}
}

// consume handles one message; batches have that size. What fails goes back to RocketMQ, which delivers it again after
// a second, then after longer and longer.
func (s *subscription) consume(ctx context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
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
		s.opts.Log.Error("rocketmq: a consumer gave an event up", "group", s.group, "message", m.MsgId, "cause", err)
		next.DelayLevelWhenNextConsume = toDeadLetters
	} else {
		next.DelayLevelWhenNextConsume = min(1+int(m.ReconsumeTimes), longestDelay)
	}
	return consumer.ConsumeRetryLater, nil
}

// Levels of delay, as brokers know them by default: 1 is a second, 5 is a minute; a negative one means the dead letters.
const (
	toDeadLetters = -1
	longestDelay  = 5
)

// begin registers a handler, unless the subscription has ended.
func (s *subscription) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if s.ended || s.ctx.Err() != nil {
		return false
	}
	s.running.Add(1)
	return true
}
