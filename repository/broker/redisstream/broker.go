// Package redisstream is a broker on Redis Streams: consumer groups on one stream, in which consumers take over the pending
// entries of consumers that died.
//
// An event is as durable as Redis is configured to make it. With appendfsync everysec, the default of Redis, a crash of
// its machine loses what it confirmed in the last second; with appendfsync always it loses nothing.
package redisstream

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/service/outbox"
)

// Options configure a Broker. Stream and Groups are required.
type Options struct {
	Stream string   // the key; the dead letters of a group are in the stream Stream:dead:Group
	Groups []string // the groups that get every event; an entry is kept until each of them has acknowledged it

	// ClaimAfter is how long a consumer may hold an entry without acknowledging it before another one takes it over. It
	// should be longer than any handler takes. Default 1 min.
	ClaimAfter time.Duration

	Log *slog.Logger // default: none
}

// Broker implements outbox.Broker. It retains payloads until Redis has answered, also after Publish has returned.
type Broker struct {
	opts   Options
	client redis.UniversalClient
	base   *outbox.BrokerBase

	mu          sync.Mutex
	groupsReady bool
}

var _ outbox.Broker = (*Broker)(nil)

// New returns a broker that uses the client and does not close it. The client must not repeat commands on its own
// (MaxRetries -1), because that could publish an event twice, and needs one connection for each subscription. Redis does
// not have to be reachable yet.
func New(client redis.UniversalClient, opts Options) (*Broker, error) {
	if opts.Stream == "" || len(opts.Groups) == 0 {
		return nil, errors.New("redisstream: a stream and its groups are required")
	}
	opts.ClaimAfter = cmp.Or(opts.ClaimAfter, time.Minute)
	opts.Log = cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	return &Broker{opts: opts, client: client, base: outbox.NewBrokerBase()}, nil
}

// Publish adds the events in one pipeline.
func (b *Broker) Publish(ctx context.Context, events []outbox.Event) []error {
	return b.base.Publish(ctx, events, func(ctx context.Context) []error {
		// Groups first: a group would miss an entry that is trimmed before the group exists.
		if err := b.ensureGroups(ctx); err != nil {
			return outbox.FailAll(events, unavailable(err))
		}
		pipe := b.client.Pipeline()
		adds := make([]*redis.StringCmd, len(events))
		for i, e := range events {
			adds[i] = pipe.XAdd(ctx, &redis.XAddArgs{Stream: b.opts.Stream, Values: values(e)})
		}
		_, _ = pipe.Exec(ctx) // each command has its own error
		results := make([]error, len(events))
		for i, add := range adds {
			if err := add.Err(); err != nil {
				results[i] = unavailable(err)
			}
		}
		return results
	})
}

// ensureGroups creates the groups once.
func (b *Broker) ensureGroups(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.groupsReady {
		return nil
	}
	for _, group := range b.opts.Groups {
		if err := b.createGroup(ctx, group); err != nil {
			return err
		}
	}
	b.groupsReady = true
	return nil
}

// createGroup creates a group that starts with the first entry of the stream, unless it exists.
func (b *Broker) createGroup(ctx context.Context, group string) error {
	err := b.client.XGroupCreateMkStream(ctx, b.opts.Stream, group, "0").Err()
	if err != nil && redis.HasErrorPrefix(err, "BUSYGROUP") {
		return nil
	}
	return err
}

// unavailable marks an error as that of Redis, which refuses no event for its content.
func unavailable(err error) error { return fmt.Errorf("%w: redis: %w", outbox.ErrUnavailable, err) }

// Close ends all subscriptions and calls. It leaves the client open.
func (b *Broker) Close() error {
	b.base.Close()
	return nil
}

// payloadField is the field of an entry that holds the payload, beside the headers.
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
