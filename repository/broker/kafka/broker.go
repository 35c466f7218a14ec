// Package kafka is a broker on Kafka: an idempotent producer that waits for all replicas, and consumer groups that
// commit what was handled, never what was only read.
package kafka

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"seckill/service/outbox"
)

// Options say where Kafka is and how to use it. Seeds and Topic are required; the zero value of another field stands for
// its default.
type Options struct {
	Seeds []string // host:port of some nodes
	Topic string   // a group is Topic.Group, its dead letters are in the topic Topic.Group.dead

	Partitions  int // of a topic that does not exist yet; default 12
	Replication int // of a topic that does not exist yet; default: the cluster's

	Workers  int           // events that a subscription handles side by side; default 16
	Prefetch int           // events that a subscription holds at most; default 1000
	Deadline time.Duration // after which the client gives up a record that it could not deliver; default 10 s

	Client []kgo.Opt    // further settings of the client: TLS, SASL, …
	Log    *slog.Logger // default: none
}

func (o *Options) setDefaults() error {
	if len(o.Seeds) == 0 || o.Topic == "" {
		return errors.New("kafka: addresses and a topic are required")
	}
	o.Partitions = orDefault(o.Partitions, 12)
	o.Replication = orDefault(o.Replication, -1)
	o.Prefetch = orDefault(o.Prefetch, 1000)
	o.Deadline = orDefault(o.Deadline, 10*time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return nil
}

func orDefault[T int | time.Duration](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}

// Broker implements outbox.Broker. It keeps the payloads of events until Kafka has answered or Options.Deadline is over,
// also when Publish has returned before: the client cannot take back what it is sending.
type Broker struct {
	opts     Options
	life     outbox.Lifetime
	producer *kgo.Client

	mu      sync.Mutex
	founded bool // the topic is there
}

var _ outbox.Broker = (*Broker)(nil)

// New returns a broker. Kafka need not be there yet.
func New(opts Options) (*Broker, error) {
	if err := opts.setDefaults(); err != nil {
		return nil, err
	}
	b := &Broker{opts: opts, life: outbox.NewLifetime()}
	producer, err := b.client(
		kgo.DefaultProduceTopic(opts.Topic),
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)), // events of one key go to one partition
		kgo.RecordDeliveryTimeout(opts.Deadline),
		// Otherwise the client holds on to records whose fate is unknown for as long as Kafka is away. Sending them
		// again under the same id is the relay's business, and consumers know them by that.
		kgo.AllowIdempotentProduceCancellation(),
		kgo.ProducerLinger(0), // a batch is what one call brings
	)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	b.producer = producer
	return b, nil
}

// client opens a client; idempotence and all acks are its defaults.
func (b *Broker) client(opts ...kgo.Opt) (*kgo.Client, error) {
	all := []kgo.Opt{
		kgo.SeedBrokers(b.opts.Seeds...),
		kgo.DialTimeout(5 * time.Second),
		kgo.RetryTimeout(b.opts.Deadline),
		kgo.RetryBackoffFn(backoff),
		kgo.MetadataMinAge(250 * time.Millisecond), // so that a node that is back is found soon
	}
	return kgo.NewClient(append(append(all, opts...), b.opts.Client...)...)
}

// backoff parts clients that lost their node at the same moment.
func backoff(failures int) time.Duration {
	return outbox.Pause{Longest: 2 * time.Second}.After(failures)
}

// Publish produces the events and waits for all replicas that are in sync.
func (b *Broker) Publish(ctx context.Context, events []outbox.Event) []error {
	return b.life.Publish(ctx, events, func(ctx context.Context) []error {
		if err := b.found(ctx); err != nil {
			return outbox.Same(len(events), unavailable(err))
		}
		results := make([]error, len(events))
		var waiting sync.WaitGroup
		waiting.Add(len(events))
		for i, e := range events {
			b.producer.Produce(ctx, record(e), func(_ *kgo.Record, err error) {
				results[i] = verdict(err)
				waiting.Done()
			})
		}
		waiting.Wait()
		return results
	})
}

// verdict tells an event's fault from Kafka's.
func verdict(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kerr.MessageTooLarge), errors.Is(err, kerr.RecordListTooLarge), errors.Is(err, kerr.InvalidRecord):
		return fmt.Errorf("%w: kafka: %w", outbox.ErrRefused, err)
	}
	return unavailable(err)
}

func unavailable(err error) error { return fmt.Errorf("%w: kafka: %w", outbox.ErrUnavailable, err) }

// found creates the topic.
func (b *Broker) found(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.founded {
		return nil
	}
	if err := b.create(ctx, b.producer, b.opts.Topic); err != nil {
		return err
	}
	b.founded = true
	return nil
}

func (b *Broker) create(ctx context.Context, client *kgo.Client, topic string) error {
	_, err := kadm.NewClient(client).CreateTopic(ctx, int32(b.opts.Partitions), int16(b.opts.Replication), nil, topic)
	if errors.Is(err, kerr.TopicAlreadyExists) {
		return nil
	}
	return err
}

// Close ends all subscriptions and calls, and drops what the client still holds.
func (b *Broker) Close() error {
	b.life.End()
	b.producer.Close()
	return nil
}

func record(e outbox.Event) *kgo.Record {
	// The timestamp is that of producing: the client counts its deadline from it, and an event may have waited for long.
	r := &kgo.Record{Key: []byte(strconv.FormatInt(e.Key, 10)), Value: e.Payload}
	for _, h := range outbox.Headers(e) {
		r.Headers = append(r.Headers, kgo.RecordHeader{Key: h.Name, Value: []byte(h.Value)})
	}
	return r
}

func parse(r *kgo.Record) (outbox.Event, error) {
	return outbox.ParseEvent(func(name string) string {
		for _, h := range r.Headers {
			if h.Key == name {
				return string(h.Value)
			}
		}
		return ""
	}, r.Value)
}
