// Package redislock keeps locks in Redis, in the layout of Redisson, so that Java services with Redisson and this
// program can share a lock: a hash at the key with one field, the owner, whose value is the depth of the hold, an expiry
// as the lease, and a channel that tells of releases. It works with a single server, with Sentinel and with a cluster.
//
// A failover can lose the lock: Redis replicates after it answered. The fencing token, which goes on rising by the
// servers' clocks, is what a store can tell two holders apart by.
package redislock

import (
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/service/lock"
	"seckill/service/lock/lockcore"
)

// Options tune a Locker. The zero value of each field stands for the default named with it.
type Options struct {
	// Lease is how long a lock outlives its last renewal. It is renewed at a third of that. Default 30 s.
	Lease time.Duration
	// Poll is how often a waiter asks, should the news of a release not reach it. Default 250 ms.
	Poll time.Duration
	// Timeout bounds the answer of Redis to one question, repeated attempts included. Default 1 s.
	Timeout time.Duration
	// Lanes is how many batches are under way at a time at most, each on a connection of its own. Default 2.
	Lanes int
}

func (o Options) withDefaults() Options {
	orElse := func(d *time.Duration, def time.Duration) {
		if *d <= 0 {
			*d = def
		}
	}
	orElse(&o.Lease, 30*time.Second)
	orElse(&o.Poll, 250*time.Millisecond)
	orElse(&o.Timeout, time.Second)
	if o.Lanes <= 0 {
		o.Lanes = 2
	}
	return o
}

// Locker is a lock.Locker over Redis. However many goroutines want a key, Redis sees one of this process's; the others
// queue here, first come, first served.
type Locker struct {
	*lockcore.Core
	backend *backend
}

var _ lock.Locker = (*Locker)(nil)

// New returns a Locker that uses client, see NewClient. The caller closes the Locker first, then the client.
func New(client redis.UniversalClient, opts Options) *Locker {
	opts = opts.withDefaults()
	b := newBackend(client, opts)
	core := lockcore.New(b, lockcore.Options{Lease: opts.Lease, Timeout: opts.Timeout, Queue: true})
	return &Locker{Core: core, backend: b}
}

// Close implements lock.Locker. It takes about Options.Timeout at most. It does not close the client.
func (l *Locker) Close() error {
	err := l.Core.Close()
	l.backend.signals.close()
	l.backend.pipe.close()
	return err
}

// channel is where Redisson publishes the release of key, see getChannelName in its RedissonLock.
func channel(key string) string {
	if strings.Contains(key, "{") {
		return "redisson_lock__channel:" + key
	}
	return "redisson_lock__channel:{" + key + "}"
}

// newUUID returns a random UUID (RFC 9562, version 4), which is what Redisson names a client by.
func newUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails, it crashes the program instead
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
