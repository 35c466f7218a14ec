package redislock

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/service/lock"
	"seckill/service/lock/lockcore"
)

// backend takes locks in Redis.
type backend struct {
	opts    Options
	pipe    *pipe
	signals *signals
	scripts scripts
	fences  *fences
	sharded any // "1" in a cluster

	process string // this process's part of the owners' names
	count   atomic.Uint64
	lease   any // Options.Lease in ms, boxed once
}

func newBackend(client redis.UniversalClient, opts Options) *backend {
	_, cluster := client.(*redis.ClusterClient)
	b := &backend{
		opts:    opts,
		pipe:    newPipe(client, opts.Lanes),
		signals: newSignals(client),
		scripts: newScripts(),
		fences:  newFences(cluster),
		sharded: "0",
		process: newUUID() + ":",
		lease:   opts.Lease.Milliseconds(),
	}
	if cluster {
		b.sharded = "1"
	}
	return b
}

// Acquire implements lockcore.Backend: it asks until the lock is granted, or the wait is over.
func (b *backend) Acquire(ctx context.Context, h *lockcore.Hold) (lockcore.Grant, error) {
	g := b.newGrant(h)
	var t *topic
	defer func() {
		if t != nil {
			b.signals.unsubscribe(t)
		}
	}()
	for {
		g.sent = time.Now()
		a, err := g.ask(ctx, b.scripts.acquire, g.sent.Add(h.Settings.Timeout), g.ms, nil)
		if err != nil {
			g.abandon(h, a)
			return nil, err
		}
		if a.n > 0 {
			g.token = uint64(a.n)
			return g, nil
		}
		if h.Settings.Try {
			return nil, lock.ErrHeld
		}
		if t == nil {
			t = b.signals.subscribe(channel(h.Key))
		}
		if err := b.await(ctx, h, t, time.Duration(-a.n)*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// await returns when it is worth asking again: at the news of a release, at the confirmation that news will come (the
// release may have been between the last answer and the subscription), when the holder's lease runs out, and otherwise
// at each poll.
func (b *backend) await(ctx context.Context, h *lockcore.Hold, t *topic, left time.Duration) error {
	wait := b.opts.Poll
	if left > 0 {
		wait = min(wait, left+time.Millisecond)
	}
	return lockcore.Wait(ctx, h, t.news, wait)
}

// grant is a lock in Redis, or what may become one.
type grant struct {
	backend *backend
	key     string
	owner   any // as it goes into commands
	ms      any // the lease
	lease   time.Duration
	sent    time.Time // when the lock was asked for
	token   uint64
}

func (b *backend) newGrant(h *lockcore.Hold) *grant {
	owner := b.process + strconv.FormatUint(b.count.Add(1), 10)
	g := &grant{backend: b, key: h.Key, owner: owner, ms: b.lease, lease: b.opts.Lease}
	if d := h.Settings.Lease; d > 0 {
		ms := max(1, (d + time.Millisecond - 1).Milliseconds())
		g.lease, g.ms = time.Duration(ms)*time.Millisecond, ms
	}
	return g
}

// ask has a script run on the lock, whose first argument is always the owner.
func (g *grant) ask(ctx context.Context, s *script, by time.Time, second, third any) (answer, error) {
	return g.backend.exchange(ctx, request{script: s, key: g.key, args: [3]any{g.owner, second, third}}, by)
}

// abandon takes back what an acquisition without an answer may have taken, or may yet take while it is pending.
func (g *grant) abandon(h *lockcore.Hold, a answer) {
	if !a.maybe {
		return
	}
	h.ReleaseLater(func() error {
		if a.pending != nil {
			<-a.pending // the client's timeouts bound it
		}
		return g.Release()
	})
}

// Token implements lockcore.Grant.
func (g *grant) Token() (uint64, bool) { return g.token, true }

// ValidUntil implements lockcore.Grant.
func (g *grant) ValidUntil() time.Time { return g.trusted(g.sent) }

// trusted returns how long a lease counts that began at sent, or later: the server's clock may be faster than ours by a
// hundredth.
func (g *grant) trusted(sent time.Time) time.Time { return sent.Add(g.lease - g.lease/100) }

// Renew implements lockcore.Grant.
func (g *grant) Renew(ctx context.Context, by time.Time) (time.Time, error) {
	sent := time.Now()
	return g.trusted(sent), g.hold(ctx, "0", g.ms, by)
}

// SetDepth implements lockcore.Grant.
func (g *grant) SetDepth(ctx context.Context, depth int, by time.Time) error {
	return g.hold(ctx, strconv.Itoa(depth), "0", by)
}

// hold sets the depth and the lease of a lock that is still ours; "0" leaves one as it is.
func (g *grant) hold(ctx context.Context, depth string, lease any, by time.Time) error {
	a, err := g.ask(ctx, g.backend.scripts.hold, by, depth, lease)
	if err == nil && a.n == 0 {
		err = lock.ErrLost
	}
	return err
}

// Release implements lockcore.Grant. It has a time of its own: the caller's context may well be over.
func (g *grant) Release() error {
	b := g.backend
	by := time.Now().Add(b.opts.Timeout)
	a, err := g.ask(context.Background(), b.scripts.release, by, channel(g.key), b.sharded)
	if err == nil && a.n == 0 && !a.maybe { // else the attempt whose reply was lost freed it
		err = lock.ErrLost
	}
	return err
}
