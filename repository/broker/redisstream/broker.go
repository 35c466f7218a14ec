// Package redisstream is a broker on Redis Streams: consumer groups on one stream, with the pending entries of consumers
// that died taken over by others.
//
// An event is as durable as Redis is told to make it. With appendfsync everysec, Redis' usual setting, a crash of its
// machine loses what it confirmed in the last second; with appendfsync always it loses nothing. Options.Replicas waits
// for replicas as well.
package redisstream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/service/outbox"
)

// Options say how to use Redis. Stream and Groups are required; the zero value of another field stands for its default.
type Options struct {
	Stream string   // the key; dead letters of a group are in the stream Stream:dead:Group
	Groups []string // that have to get every event; entries are kept until each of them has acknowledged

	// Replicas makes a confirmation wait until so many replicas have the event, for ReplicaTimeout at most (default
	// 1 s). Not for a cluster.
	Replicas       int
	ReplicaTimeout time.Duration

	Workers  int // events that a subscription handles side by side; default 16
	Prefetch int // events that a subscription holds at most; default 1000
	// ClaimAfter is how long an entry may be with a consumer that does not acknowledge it before another takes it
	// over. It should be longer than any handler takes. Default 1 min.
	ClaimAfter time.Duration
	TrimEvery  time.Duration // how often what every group has acknowledged is removed; default 1 min

	Log *slog.Logger // default: none
}

func (o *Options) setDefaults() error {
	if o.Stream == "" || len(o.Groups) == 0 {
		return errors.New("redisstream: a stream and its groups are required")
	}
	o.Prefetch = orDefault(o.Prefetch, 1000)
	o.ClaimAfter = orDefault(o.ClaimAfter, time.Minute)
	o.TrimEvery = orDefault(o.TrimEvery, time.Minute)
	o.ReplicaTimeout = orDefault(o.ReplicaTimeout, time.Second)
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

// Broker implements outbox.Broker. It keeps the payloads of events until Redis has answered, also when Publish has
// returned before.
type Broker struct {
	opts   Options
	client redis.UniversalClient
	life   outbox.Lifetime

	mu      sync.Mutex
	founded bool // the groups are there
}

var _ outbox.Broker = (*Broker)(nil)

// New returns a broker that uses the client, which stays the caller's. The client should not repeat commands by itself
// (MaxRetries -1): that could publish an event twice. It needs a connection for each subscription. Redis need not be
// there yet.
func New(client redis.UniversalClient, opts Options) (*Broker, error) {
	if err := opts.setDefaults(); err != nil {
		return nil, err
	}
	if _, cluster := client.(*redis.ClusterClient); cluster && opts.Replicas > 0 {
		return nil, errors.New("redisstream: in a cluster nothing can wait for replicas")
	}
	return &Broker{opts: opts, client: client, life: outbox.NewLifetime()}, nil
}

// Publish adds the events in one pipeline.
func (b *Broker) Publish(ctx context.Context, events []outbox.Event) []error {
	return b.life.Publish(ctx, events, func(ctx context.Context) []error {
		// Groups first: an entry that was trimmed before a group existed would be lost to it.
		if err := b.found(ctx); err != nil {
			return outbox.Same(len(events), unavailable(err))
		}
		pipe := b.client.Pipeline()
		adds := make([]*redis.StringCmd, len(events))
		for i, e := range events {
			adds[i] = pipe.XAdd(ctx, &redis.XAddArgs{Stream: b.opts.Stream, Values: values(e)})
		}
		var wait *redis.Cmd
		if b.opts.Replicas > 0 {
			wait = pipe.Do(ctx, "WAIT", b.opts.Replicas, b.opts.ReplicaTimeout.Milliseconds())
		}
		_, _ = pipe.Exec(ctx) // each command has its own error
		notReplicated := b.waited(wait)
		results := make([]error, len(events))
		for i, add := range adds {
			if err := add.Err(); err != nil {
				results[i] = unavailable(err)
			} else {
				results[i] = notReplicated
			}
		}
		return results
	})
}

// waited tells whether enough replicas have the events.
func (b *Broker) waited(wait *redis.Cmd) error {
	if wait == nil {
		return nil
	}
	n, err := wait.Int()
	switch {
	case err != nil:
		return unavailable(err)
	case n < b.opts.Replicas:
		return fmt.Errorf("%w: redis: %d of %d replicas had the events within %v", outbox.ErrUnavailable, n, b.opts.Replicas, b.opts.ReplicaTimeout)
	}
	return nil
}

// found creates the groups, from the beginning of the stream on.
func (b *Broker) found(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.founded {
		return nil
	}
	for _, group := range b.opts.Groups {
		if err := b.create(ctx, group); err != nil {
			return err
		}
	}
	b.founded = true
	return nil
}

func (b *Broker) create(ctx context.Context, group string) error {
	err := b.client.XGroupCreateMkStream(ctx, b.opts.Stream, group, "0").Err()
	if err != nil && redis.HasErrorPrefix(err, "BUSYGROUP") {
		return nil
	}
	return err
}

// unavailable blames Redis: it never refuses an event for what the event is.
func unavailable(err error) error { return fmt.Errorf("%w: redis: %w", outbox.ErrUnavailable, err) }

// Close ends all subscriptions and calls. It leaves the client open.
func (b *Broker) Close() error {
	b.life.End()
	return nil
}

// payloadField is the field of an entry that holds the payload, beside those named by the headers.
const payloadField = "payload"

func values(e outbox.Event) []any {
	values := make([]any, 0, 14)
	for _, h := range outbox.Headers(e) {
		values = append(values, h.Name, h.Value)
	}
	return append(values, payloadField, e.Payload)
}

func parse(m redis.XMessage) (outbox.Event, error) {
	text := func(name string) string {
		s, _ := m.Values[name].(string)
		return s
	}
	return outbox.ParseEvent(text, []byte(text(payloadField)))
}
