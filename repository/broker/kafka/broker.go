// Package kafka is a broker on Kafka: an idempotent producer that waits for all in-sync replicas, and consumer groups that
// commit the offsets of handled events only.
package kafka

import (
	"cmp"
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

// Options configure a Broker. Seeds and Topic are required.
type Options struct {
	Seeds []string     // host:port of some nodes
	Topic string       // the consumer group of a group is Topic.Group, its dead letters are in the topic Topic.Group.dead
	Log   *slog.Logger // default: none
}

const (
	partitions = 12               // of a topic that does not exist yet; its replication is the cluster's default
	prefetch   = 1000             // events that a subscription holds at most
	deadline   = 10 * time.Second // after which the client gives up a record that it could not deliver
)

// Broker implements outbox.Broker. It retains payloads until Kafka has answered or the deadline of ten seconds is over,
// also after Publish has returned, because the client cannot cancel a record that it is sending.
type Broker struct {
	opts     Options
	base     *outbox.BrokerBase
	producer *kgo.Client

	mu         sync.Mutex
	topicReady bool
}

var _ outbox.Broker = (*Broker)(nil)

// New returns a broker. Kafka does not have to be reachable yet.
func New(opts Options) (*Broker, error) {
	if len(opts.Seeds) == 0 || opts.Topic == "" {
		return nil, errors.New("kafka: addresses and a topic are required")
	}
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	b := &Broker{opts: opts, base: outbox.NewBrokerBase()}
	producer, err := b.newClient(
		kgo.DefaultProduceTopic(opts.Topic),
		kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)), // events of one key go to one partition
		kgo.RecordDeliveryTimeout(deadline),
		// Without this the client retains records with an unknown result for as long as Kafka is unavailable. The relay
		// sends them again under the same event id, by which consumers recognize them.
		kgo.AllowIdempotentProduceCancellation(),
		kgo.ProducerLinger(0), // the events of one call are a batch already
	)
	if err != nil {
		return nil, fmt.Errorf("kafka: %w", err)
	}
	b.producer = producer
	return b, nil
}

// newClient returns a client; it is idempotent and waits for all acks by default.
func (b *Broker) newClient(opts ...kgo.Opt) (*kgo.Client, error) {
	return kgo.NewClient(append(opts,
		kgo.SeedBrokers(b.opts.Seeds...),
		kgo.DialTimeout(5*time.Second),
		kgo.RetryTimeout(deadline),
		kgo.RetryBackoffFn(outbox.Backoff{Longest: 2 * time.Second}.After),
		kgo.MetadataMinAge(250*time.Millisecond), // so that a node that has returned is found soon
	)...)
}

// Publish produces the events and waits for all in-sync replicas.
func (b *Broker) Publish(ctx context.Context, events []outbox.Event) []error {
	return b.base.Publish(ctx, events, func(ctx context.Context) []error {
		if err := b.ensureTopic(ctx); err != nil {
			return outbox.FailAll(events, unavailable(err))
		}
		results := make([]error, len(events))
		var waiting sync.WaitGroup
		waiting.Add(len(events))
		for i, e := range events {
			b.producer.Produce(ctx, newRecord(e), func(_ *kgo.Record, err error) {
				results[i] = publishError(err)
				waiting.Done()
			})
		}
		waiting.Wait()
		return results
	})
}

// publishError distinguishes faults of the event from those of Kafka.
func publishError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, kerr.MessageTooLarge), errors.Is(err, kerr.RecordListTooLarge), errors.Is(err, kerr.InvalidRecord):
		return fmt.Errorf("%w: kafka: %w", outbox.ErrRefused, err)
	}
	return unavailable(err)
}

func unavailable(err error) error { return fmt.Errorf("%w: kafka: %w", outbox.ErrUnavailable, err) }

// ensureTopic creates the topic once. Kafka would create it with its own default number of partitions.
func (b *Broker) ensureTopic(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.topicReady {
		return nil
	}
	err := createTopic(ctx, b.producer, b.opts.Topic)
	b.topicReady = err == nil
	return err
}

func createTopic(ctx context.Context, client *kgo.Client, topic string) error {
	const defaultReplication = -1
	_, err := kadm.NewClient(client).CreateTopic(ctx, partitions, defaultReplication, nil, topic)
	if errors.Is(err, kerr.TopicAlreadyExists) {
		return nil
	}
	return err
}

// Close ends all subscriptions and calls, and drops the records that the client still holds.
func (b *Broker) Close() error {
	b.base.Close()
	b.producer.Close()
	return nil
}

func newRecord(e outbox.Event) *kgo.Record {
	// The client sets the timestamp and counts its deadline from it; an event may be much older than that.
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
