// Package rocketmq is a broker on RocketMQ 4 and 5, over the remoting protocol of apache/rocketmq-client-go v2.
//
// That client is maintained, but this package has to work around some of its properties: it does not keep the order of a
// key when it consumes concurrently, its logger belongs to the whole process, and the goroutines of a consumer end some
// time after its shutdown. Consumers recognize events that arrive out of order by their version.
package rocketmq

import (
	"cmp"
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
	"github.com/apache/rocketmq-client-go/v2/rlog"

	"seckill/service/outbox"
)

// Options configure a Broker. NameServers and Topic are required. The topic has to exist, unless RocketMQ creates topics
// automatically.
type Options struct {
	NameServers []string     // host:port
	Topic       string       // the consumer group of a group is Topic_Group, its dead letters are in the topic %DLQ%Topic_Group
	Log         *slog.Logger // default: none; the client library logs to that of the first broker in the process
}

const (
	workers     = 16              // events that a subscription handles concurrently
	sendTimeout = 3 * time.Second // of one request
	maxPayload  = 4<<20 - 64<<10  // RocketMQ's default maxMessageSize, less the headers
	maxHeaders  = 512             // bytes of headers per event
)

// Broker implements outbox.Broker. It retains payloads until RocketMQ has answered, also after Publish has returned,
// because the client ignores its context.
type Broker struct {
	opts Options
	base *outbox.BrokerBase

	mu       sync.Mutex
	producer client.Producer // nil until it is needed
}

var _ outbox.Broker = (*Broker)(nil)

// New returns a broker. RocketMQ does not have to be reachable yet.
func New(opts Options) (*Broker, error) {
	if len(opts.NameServers) == 0 || opts.Topic == "" {
		return nil, errors.New("rocketmq: name servers and a topic are required")
	}
	if _, err := primitive.NewNamesrvAddr(opts.NameServers...); err != nil {
		return nil, fmt.Errorf("rocketmq: name servers: %w", err)
	}
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	redirectLog(opts.Log)
	return &Broker{opts: opts, base: outbox.NewBrokerBase()}, nil
}

// startedProducer returns the producer. It starts one if there is none.
func (b *Broker) startedProducer() (client.Producer, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.base.Err() != nil || b.producer != nil {
		return b.producer, b.base.Err()
	}
	p, err := client.NewProducer(
		producer.WithNsResolver(primitive.NewPassthroughResolver(b.opts.NameServers)),
		producer.WithGroupName(b.opts.Topic+"_producer"),
		producer.WithInstanceName(rand.Text()), // clients with the same name share connections and shutdown
		producer.WithSendMsgTimeout(sendTimeout),
		producer.WithRetry(0), // the relay retries
		producer.WithQueueSelector(byShard{}),
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

// Publish sends the events in batches, one for each shard of keys, and waits for RocketMQ's confirmations.
func (b *Broker) Publish(ctx context.Context, events []outbox.Event) []error {
	return b.base.Publish(ctx, events, func(ctx context.Context) []error {
		p, err := b.startedProducer()
		if err != nil {
			return outbox.FailAll(events, err)
		}
		results := make([]error, len(events))
		var sending sync.WaitGroup
		for shard, indexes := range shardByKey(events, results) {
			sending.Go(func() { b.send(ctx, p, shard, events, indexes, results) })
		}
		sending.Wait()
		return results
	})
}

// shards is the number of batches of one call. A batch goes to one queue, so the events of one key are in one batch.
const shards = 8

// shardByKey returns the indexes of each shard's events. It refuses events that are too large.
func shardByKey(events []outbox.Event, results []error) map[int][]int {
	sharded := map[int][]int{}
	for i, e := range events {
		if len(e.Payload) > maxPayload {
			results[i] = fmt.Errorf("%w: %d bytes are more than RocketMQ accepts (%d)", outbox.ErrRefused, len(e.Payload), maxPayload)
			continue
		}
		shard := int(uint64(e.Key) % shards)
		sharded[shard] = append(sharded[shard], i)
	}
	return sharded
}

// send sends the events of one shard, as many at a time as fit into a message.
func (b *Broker) send(ctx context.Context, p client.Producer, shard int, events []outbox.Event, indexes []int, results []error) {
	for len(indexes) > 0 {
		size, n := 0, 0
		var batch []*primitive.Message
		for n < len(indexes) && (n == 0 || size+len(events[indexes[n]].Payload)+maxHeaders <= maxPayload) {
			size += len(events[indexes[n]].Payload) + maxHeaders
			batch = append(batch, b.newMessage(events[indexes[n]], shard))
			n++
		}
		err := sendError(p.SendSync(ctx, batch...))
		for _, i := range indexes[:n] {
			results[i] = err
		}
		indexes = indexes[n:]
	}
}

// sendError also fails messages that are stored less durably than RocketMQ is configured to; the client accepts them.
func sendError(r *primitive.SendResult, err error) error {
	switch {
	case err != nil:
		return unavailable(err)
	case r.Status != primitive.SendOK:
		return unavailable(fmt.Errorf("not stored as configured: status %d", r.Status))
	}
	return nil
}

func unavailable(err error) error { return fmt.Errorf("%w: rocketmq: %w", outbox.ErrUnavailable, err) }

func (b *Broker) newMessage(e outbox.Event, shard int) *primitive.Message {
	m := primitive.NewMessage(b.opts.Topic, e.Payload)
	m.WithKeys([]string{strconv.FormatInt(e.ID, 10)}).WithShardingKey(strconv.FormatInt(e.Key, 10))
	for _, h := range outbox.Headers(e) {
		m.WithProperty(h.Name, h.Value)
	}
	m.Queue = &primitive.MessageQueue{QueueId: shard} // the client passes nothing else of a batch to the queue selector
	return m
}

// byShard maps shards to queues.
type byShard struct{}

func (byShard) Select(m *primitive.Message, queues []*primitive.MessageQueue, _ string) *primitive.MessageQueue {
	return queues[m.Queue.QueueId%len(queues)]
}

// Close ends all subscriptions and calls.
func (b *Broker) Close() error {
	b.base.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.producer == nil {
		return nil
	}
	err := b.producer.Shutdown()
	b.producer = nil
	return err
}

// logOnce guards the client library's only logger, which it reads without a lock.
var logOnce sync.Once

func redirectLog(log *slog.Logger) {
	logOnce.Do(func() { rlog.SetLogger(libraryLog{log}) })
}

// libraryLog passes the library's warnings and errors on, one level lower: the library logs each reconnection as an error.
type libraryLog struct{ log *slog.Logger }

func (l libraryLog) Debug(string, map[string]any) {}
func (l libraryLog) Info(string, map[string]any)  {}
func (l libraryLog) Warning(msg string, fields map[string]any) {
	l.write(slog.LevelDebug, msg, fields)
}
func (l libraryLog) Error(msg string, fields map[string]any) {
	l.write(slog.LevelWarn, msg, fields)
}
func (l libraryLog) Fatal(msg string, fields map[string]any) {
	l.write(slog.LevelError, msg, fields)
}
func (l libraryLog) Level(string)            {}
func (l libraryLog) OutputPath(string) error { return nil }

func (l libraryLog) write(level slog.Level, msg string, fields map[string]any) {
	attrs := make([]slog.Attr, 0, len(fields))
	for name, value := range fields {
		attrs = append(attrs, slog.Any(name, value))
	}
	l.log.LogAttrs(context.Background(), level, "rocketmq: "+msg, attrs...)
}
