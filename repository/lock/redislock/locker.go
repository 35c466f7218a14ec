// Package redislock keeps locks in Redis, in the layout of Redisson, so that Java services with Redisson and this program
// can share a lock. A lock is a hash at the key with one field: the owner's name, whose value is the depth. Its expiry
// is the lease, and a channel announces releases. It works with a single server, with Sentinel and with a cluster.
//
// A failover can lose a lock, because Redis replicates after it has answered. The fencing tokens keep rising then, by the
// clocks of the servers, so that a store can refuse the earlier holder.
package redislock

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/service/lock"
	"seckill/service/lock/lockcore"
)

// Options tune a Locker. Zero selects the default of a field.
type Options struct {
	// Lease is how long a lock outlives its last renewal. A third of it is the interval of renewals. Default 30 s.
	Lease time.Duration
	// Poll is how often a waiter asks, in case the message about a release was lost. Default 250 ms.
	Poll time.Duration
	// Timeout bounds one answer of Redis, including repeated attempts. Default 1 s.
	Timeout time.Duration
}

func (o Options) withDefaults() Options {
	o.Lease = cmp.Or(o.Lease, 30*time.Second)
	o.Poll = cmp.Or(o.Poll, 250*time.Millisecond)
	o.Timeout = cmp.Or(o.Timeout, time.Second)
	return o
}

// Locker is a lock.Locker over Redis. One caller of each process asks Redis for a key; the others queue in the process,
// first come, first served.
type Locker struct {
	*lockcore.Core
	backend *backend
}

var _ lock.Locker = (*Locker)(nil)

// New returns a Locker that uses client, see NewClient. The caller closes the Locker first, then the client.
func New(client redis.UniversalClient, opts Options) *Locker {
	opts = opts.withDefaults()
	b := newBackend(client, opts)
	return &Locker{
		Core:    lockcore.New(b, lockcore.Options{Lease: opts.Lease, Timeout: opts.Timeout, Queue: true}),
		backend: b,
	}
}

// Close implements lock.Locker. It takes about Options.Timeout at most. It does not close the client.
func (l *Locker) Close() error {
	err := l.Core.Close()
	l.backend.subscriber.close()
	return err
}

// Requests returns how many script calls the Locker has sent. Under load many of them share one round trip.
func (l *Locker) Requests() int64 { return l.backend.batcher.sent.Load() }

// Break takes the lock named key away from its holder, without telling. It is for an operator who knows that the holder
// is gone, and for experiments: a failover that forgets the lock has the same effect.
func Break(ctx context.Context, client redis.UniversalClient, key string) error {
	return client.Del(ctx, key).Err()
}

// channel returns the channel on which Redisson publishes the release of key, see getChannelName in its RedissonLock.
func channel(key string) string {
	if strings.Contains(key, "{") {
		return "redisson_lock__channel:" + key
	}
	return "redisson_lock__channel:{" + key + "}"
}
