// Package rocketmq is a broker on RocketMQ 4 and 5, over the remoting protocol of apache/rocketmq-client-go v2.
//
// That client is maintained, but has habits that this package has to live with: it does not keep the order of a key when
// it consumes concurrently, its logger belongs to the whole process, and a consumer that was shut down leaves
// goroutines behind for a while. Events that arrive out of order are settled by their version.
package rocketmq

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	client "github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"

	"seckill/service/outbox"
)

// Options say where RocketMQ is and how to use it. NameServers and Topic are required; the zero value of another field
// stands for its default. The topic has to exist, unless the brokers create topics by themselves.
type Options struct {
	NameServers []string // host:port
	Topic       string   // a group is Topic_Group, its dead letters are in the topic %DLQ%Topic_Group

	AccessKey, SecretKey string // empty: no authentication

	Workers    int // events that a subscription handles side by side; default 16
	MaxPayload int // the brokers' maxMessageSize less what headers take; default 4 MiB - 64 KiB

	Log *slog.Logger // default: none. That of the first broker of a process gets what the client library says
}

func (o *Options) setDefaults() error {
	if len(o.NameServers) == 0 || o.Topic == "" {
		return errors.New("rocketmq: name servers and a topic are required")
	}
	if o.Workers <= 0 {
		o.Workers = 16
	}
	if o.MaxPayload <= 0 {
		o.MaxPayload = 4<<20 - 64<<10
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

// sendTimeout bounds one request to a broker.
const sendTimeout = 3 * time.Second

// Broker implements outbox.Broker. It keeps the payloads of events until RocketMQ has answered, also when Publish has
// returned before: the client does not heed its context.
type Broker struct {
	opts Options
	life outbox.Lifetime

	mu       sync.Mutex
	producer client.Producer // nil until it is needed
}

var _ outbox.Broker = (*Broker)(nil)

// New returns a broker. RocketMQ need not be there yet.
func New(opts Options) (*Broker, error) {
	if err := opts.setDefaults(); err != nil {
		return nil, err
	}
	if _, err := primitive.NewNamesrvAddr(opts.NameServers...); err != nil {
		return nil, fmt.Errorf("rocketmq: name servers: %w", err)
	}
	redirectLog(opts.Log)
	return &Broker{opts: opts, life: outbox.NewLifetime()}, nil
}

func (b *Broker) group(name string) string { return b.opts.Topic + "_" + name }

// DeadTopic names the topic of a group's dead letters.
func DeadTopic(topic, group string) string { return "%DLQ%" + topic + "_" + group }

func (b *Broker) credentials() primitive.Credentials {
	return primitive.Credentials{AccessKey: b.opts.AccessKey, SecretKey: b.opts.SecretKey}
}

// publishing returns the producer, starting one if need be.
func (b *Broker) publishing() (client.Producer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.life.Err() != nil || b.producer != nil {
		return b.producer, b.life.Err()
	}
	p, err := client.NewProducer(
		producer.WithNsResolver(primitive.NewPassthroughResolver(b.opts.NameServers)),
		producer.WithGroupName(b.opts.Topic+"_producer"),
		producer.WithInstanceName(rand.Text()), // clients of one name share their connections and their end
		producer.WithCredentials(b.credentials()),
		producer.WithSendMsgTimeout(sendTimeout),
		producer.WithRetry(0), // sending again is the relay's business
		producer.WithQueueSelector(byLane{}),
	)
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		return nil, unavailable(err)
	}
	b.producer = p
	return p, nil
}

// Publish sends the events in batches, one for each lane of keys, and waits for RocketMQ's confirmations.
func (b *Broker) Publish(ctx context.Context, events []outbox.Event) []error {
	return b.life.Publish(ctx, events, func(ctx context.Context) []error {
		p, err := b.publishing()
		if err != nil {
			return outbox.Same(len(events), err)
		}
		results := make([]error, len(events))
		var sending sync.WaitGroup
		for lane, indexes := range b.lanes(events, results) {
			sending.Go(func() { b.send(ctx, p, lane, events, indexes, results) })
		}
		sending.Wait()
		return results
	})
}

// lanes is how many batches a call is split into. A batch goes to one queue, so events of one key have to be in one.
const lanes = 8

// lanes sorts the events by their keys, and refuses what is too large.
func (b *Broker) lanes(events []outbox.Event, results []error) map[int][]int {
	sorted := map[int][]int{}
	for i, e := range events {
		if len(e.Payload) > b.opts.MaxPayload {
			results[i] = fmt.Errorf("%w: %d bytes are more than RocketMQ takes (%d)", outbox.ErrRefused, len(e.Payload), b.opts.MaxPayload)
			continue
		}
		lane := int(uint64(e.Key) % lanes)
		sorted[lane] = append(sorted[lane], i)
	}
	return sorted
}

// send sends the events of one lane, as many at a time as fit into a message.
func (b *Broker) send(ctx context.Context, p client.Producer, lane int, events []outbox.Event, indexes []int, results []error) {
	const perEvent = 512 // bytes that headers take, generously
	for len(indexes) > 0 {
		size, n := 0, 0
		var batch []*primitive.Message
		for n < len(indexes) && (n == 0 || size+len(events[indexes[n]].Payload)+perEvent <= b.opts.MaxPayload) {
			size += len(events[indexes[n]].Payload) + perEvent
			batch = append(batch, b.message(events[indexes[n]], lane))
			n++
		}
		err := confirmed(p.SendSync(ctx, batch...))
		for _, i := range indexes[:n] {
			results[i] = err
		}
		indexes = indexes[n:]
	}
}

// confirmed tells whether the messages are stored as the brokers are set to store them. The client also succeeds with
// less.
func confirmed(r *primitive.SendResult, err error) error {
	switch {
	case err != nil:
		return unavailable(err)
	case r.Status != primitive.SendOK:
		return unavailable(fmt.Errorf("not stored as it should be: status %d", r.Status))
	}
	return nil
}

// unavailable blames RocketMQ or the way to it.
func unavailable(err error) error { return fmt.Errorf("%w: rocketmq: %w", outbox.ErrUnavailable, err) }

func (b *Broker) message(e outbox.Event, lane int) *primitive.Message {
	m := primitive.NewMessage(b.opts.Topic, e.Payload)
	m.WithKeys([]string{strconv.FormatInt(e.ID, 10)}).WithShardingKey(strconv.FormatInt(e.Key, 10))
	for _, h := range outbox.Headers(e) {
		m.WithProperty(h.Name, h.Value)
	}
	m.Queue = &primitive.MessageQueue{QueueId: lane} // all that the client keeps of a batch's messages
	return m
}

// byLane maps lanes to queues.
type byLane struct{}

func (byLane) Select(m *primitive.Message, queues []*primitive.MessageQueue, _ string) *primitive.MessageQueue {
	return queues[m.Queue.QueueId%len(queues)]
}

// Close ends all subscriptions and calls.
func (b *Broker) Close() error {
	b.life.End()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.producer == nil {
		return nil
	}
	err := b.producer.Shutdown()
	b.producer = nil
	return err
}
