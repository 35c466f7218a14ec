// Package redislock keeps locks in Redis, in the layout of Redisson, so that Java services with Redisson and this
// program can share a lock: a hash at the key with one field, the owner, whose value is the depth of the hold, an expiry
// as the lease, and a channel that tells of releases. It works with a single server, with Sentinel and with a cluster.
//
// A failover can lose the lock: Redis replicates after it answered. The fencing token, which goes on rising by the
// servers' clocks, is what a store can tell two holders apart by.
package redislock

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/service/lock"
)

// Options tune a Locker. The zero value of each field stands for the default named with it.
type Options struct {
	// Lease is how long a lock outlives its last renewal. It is renewed at a third of that. Default 30 s.
	Lease time.Duration
	// MaxHold bounds how long a hold is renewed, whatever its holder does. Default: no bound.
	MaxHold time.Duration
	// Poll is how often a waiter asks, should the news of a release not reach it. Default 250 ms.
	Poll time.Duration
	// Timeout bounds the answer of Redis to one question, repeated attempts included. Default 1 s.
	Timeout time.Duration
	// Lanes is how many pipelines are under way at a time at most. Default 2.
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

// Locker is a lock.Locker over Redis.
type Locker struct {
	opts    Options
	pipe    *pipe
	signals *signals
	scripts scripts
	fences  *fences
	cluster bool

	owner string // this process's part of the owners' names
	count atomic.Uint64
	lease any // Options.Lease in ms, boxed once

	closed     chan struct{}
	background sync.WaitGroup // what Close waits for: acquisitions under way, and what spawn started

	mu    sync.Mutex // guards the places
	shut  bool
	slots map[string]*slot
}

var _ lock.Locker = (*Locker)(nil)

// New returns a Locker that uses client, see NewClient. The caller closes the Locker first, then the client.
func New(client redis.UniversalClient, opts Options) *Locker {
	opts = opts.withDefaults()
	_, cluster := client.(*redis.ClusterClient)
	return &Locker{
		opts:    opts,
		pipe:    newPipe(client, opts.Lanes),
		signals: newSignals(client),
		scripts: newScripts(),
		fences:  newFences(cluster),
		cluster: cluster,
		owner:   newUUID() + ":",
		lease:   opts.Lease.Milliseconds(),
		closed:  make(chan struct{}),
		slots:   make(map[string]*slot),
	}
}

// Acquire implements lock.Locker. An explicit lease is rounded up to milliseconds.
func (l *Locker) Acquire(ctx context.Context, key string, opts ...lock.Option) (lock.Lease, error) {
	if err := ended(ctx); err != nil {
		return nil, err
	}
	if key == "" {
		return nil, errors.New("redislock: empty key")
	}
	outer, _ := ctx.Value(l).(*lease)
	for o := outer; o != nil; o = o.outer {
		if o.hold.key == key && o.hold.isHeld() {
			return o.hold.reenter(ctx, outer, lock.NewSettings(opts))
		}
	}
	w := newWish(key, lock.NewSettings(opts), l.opts)
	defer w.stop()
	place, err := l.enter(ctx, &w)
	if err != nil {
		return nil, err
	}
	defer l.background.Done()
	granted, err := l.contend(ctx, &w, place, outer)
	if err != nil {
		l.leave(key, place, err)
		return nil, err
	}
	return granted, nil
}

// ended returns why ctx is over, if it is. Where that is the loss of a lease, the loss is what the caller needs to know.
func ended(ctx context.Context) error {
	err := ctx.Err()
	if err != nil && errors.Is(context.Cause(ctx), lock.ErrLost) {
		return context.Cause(ctx)
	}
	return err
}

// wish is one Acquire: what is wanted, and how long.
type wish struct {
	key      string
	settings lock.Settings
	timeout  time.Duration
	timer    *time.Timer
	expired  <-chan time.Time // nil unless the wait is bounded
}

func newWish(key string, s lock.Settings, o Options) wish {
	w := wish{key: key, settings: s, timeout: o.Timeout}
	if s.Timeout > 0 {
		w.timeout = s.Timeout
	}
	if s.Wait > 0 {
		w.timer = time.NewTimer(s.Wait)
		w.expired = w.timer.C
	}
	return w
}

func (w *wish) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}

// Close implements lock.Locker. It takes about Options.Timeout at most. It does not close the client.
func (l *Locker) Close() error {
	l.mu.Lock()
	if l.shut {
		l.mu.Unlock()
		return nil
	}
	l.shut = true
	close(l.closed)
	var held []*hold
	for _, s := range l.slots {
		if s.hold != nil {
			held = append(held, s.hold)
		}
	}
	l.mu.Unlock()
	var returned sync.WaitGroup
	for _, h := range held {
		returned.Go(func() { h.finish(lock.ErrClosed) })
	}
	returned.Wait()
	l.background.Wait()
	l.signals.close()
	return nil
}

// spawn runs f in the background; Close waits for it. It reports false, and does not, when the Locker is closed.
func (l *Locker) spawn(f func()) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shut {
		return false
	}
	l.background.Go(f)
	return true
}

func (l *Locker) newOwner() string {
	return l.owner + strconv.FormatUint(l.count.Add(1), 10)
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
