package redislock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"uuid"

	"github.com/redis/go-redis/v9"

	"seckill/service/lock"
	"seckill/service/lock/lockcore"
)

// backend takes locks in Redis.
type backend struct {
	opts           Options
	batcher        *batcher
	subscriber     *subscriber
	fences         *fences
	publishToShard string // "1" in a cluster, else "0"

	process   string        // the part of the owners' names that all owners of this process share
	lastOwner atomic.Uint64 // the number of the last owner
}

func newBackend(client redis.UniversalClient, opts Options) *backend {
	_, cluster := client.(*redis.ClusterClient)
	b := &backend{
		opts:           opts,
		batcher:        newBatcher(client),
		subscriber:     newSubscriber(client),
		fences:         &fences{cluster: cluster},
		publishToShard: "0",
		process:        uuid.NewV4().String() + ":",
	}
	if cluster {
		b.publishToShard = "1"
	}
	return b
}

// Acquire implements lockcore.Backend. It asks again until the lock is granted or the wait is over.
func (b *backend) Acquire(ctx context.Context, h *lockcore.Hold) (lockcore.Grant, error) {
	g := b.newGrant(h)
	var sub *subscription
	defer func() { b.subscriber.unsubscribe(sub) }()
	for {
		g.sent = time.Now()
		r, err := b.run(ctx, g.sent.Add(h.Settings.Timeout), acquireScript, []string{g.key, b.fences.of(g.key)}, g.owner, g.lease.Milliseconds())
		if err != nil {
			g.abandon(h, r)
			return nil, err
		}
		if r.value > 0 {
			g.token = uint64(r.value)
			return g, nil
		}
		if h.Settings.Try {
			return nil, lock.ErrHeld
		}
		if sub == nil {
			sub = b.subscriber.subscribe(channel(g.key))
		}
		holderLease := time.Duration(-r.value) * time.Millisecond
		if err := b.waitForRelease(ctx, h, sub, holderLease); err != nil {
			return nil, err
		}
	}
}

// waitForRelease returns when it is worth asking again: after a release; when the subscription is confirmed, because the
// release may have happened before; when the holder's lease ends; and at each poll.
func (b *backend) waitForRelease(ctx context.Context, h *lockcore.Hold, sub *subscription, holderLease time.Duration) error {
	timeout := b.opts.Poll
	if holderLease > 0 {
		timeout = min(timeout, holderLease+time.Millisecond)
	}
	return lockcore.Wait(ctx, h, sub.wake, timeout)
}

// grant is a lock in Redis, or the attempt to get it.
type grant struct {
	backend *backend
	key     string
	owner   string
	lease   time.Duration // in whole milliseconds
	sent    time.Time     // when the lock was asked for
	token   uint64
}

func (b *backend) newGrant(h *lockcore.Hold) *grant {
	g := &grant{backend: b, key: h.Key, lease: b.opts.Lease, owner: b.process + strconv.FormatUint(b.lastOwner.Add(1), 10)}
	if explicit := h.Settings.Lease; explicit > 0 {
		g.lease = max(time.Millisecond, (explicit + time.Millisecond - 1).Truncate(time.Millisecond))
	}
	return g
}

// abandon releases what an acquisition without an answer has taken, or may still take while it runs.
func (g *grant) abandon(h *lockcore.Hold, r result) {
	if !r.uncertain {
		return
	}
	h.ReleaseLater(func() error {
		if r.running != nil {
			<-r.running // the client's timeouts bound it
		}
		return g.Release()
	})
}

// Token implements lockcore.Grant.
func (g *grant) Token() (uint64, bool) { return g.token, true }

// ValidUntil implements lockcore.Grant.
func (g *grant) ValidUntil() time.Time { return g.validUntil(g.sent) }

// validUntil returns the time until which the lease can be trusted; sent is when its request was sent. A hundredth is
// subtracted because the server's clock may be faster.
func (g *grant) validUntil(sent time.Time) time.Time { return sent.Add(g.lease - g.lease/100) }

// Renew implements lockcore.Grant.
func (g *grant) Renew(ctx context.Context, deadline time.Time) (time.Time, error) {
	sent := time.Now()
	return g.validUntil(sent), g.update(ctx, deadline, 0, g.lease)
}

// SetDepth implements lockcore.Grant.
func (g *grant) SetDepth(ctx context.Context, depth int, deadline time.Time) error {
	return g.update(ctx, deadline, depth, 0)
}

// update sets the depth and the lease of a lock that the owner still holds. Zero keeps a value as it is.
func (g *grant) update(ctx context.Context, deadline time.Time, depth int, lease time.Duration) error {
	r, err := g.backend.run(ctx, deadline, updateScript, []string{g.key}, g.owner, depth, lease.Milliseconds())
	if err == nil && r.value == 0 {
		return lock.ErrLost
	}
	return err
}

// Release implements lockcore.Grant. It does not use the caller's context, which may have ended.
func (g *grant) Release() error {
	b := g.backend
	deadline := time.Now().Add(b.opts.Timeout)
	r, err := b.run(context.Background(), deadline, releaseScript, []string{g.key}, g.owner, channel(g.key), b.publishToShard)
	if err == nil && r.value == 0 && !r.uncertain { // else the attempt whose reply was lost has released it
		return lock.ErrLost
	}
	return err
}

// result is what came of running a script.
type result struct {
	value     int64
	uncertain bool            // an attempt whose reply was lost may have taken effect
	running   <-chan struct{} // closed when the last attempt has ended; nil if it has
}

// run runs a script until the server answers, the deadline passes or ctx ends. It repeats failed attempts. The error wraps
// lock.ErrUnavailable, is that of ctx, or is one that repeating cannot change.
func (b *backend) run(ctx context.Context, deadline time.Time, script *redis.Script, keys []string, args ...any) (r result, err error) {
	load := false
	for attempt := 0; ; attempt++ {
		call := &scriptCall{script: script, keys: keys, args: args, load: load}
		if r.running, err = b.batcher.do(ctx, call, deadline); r.running != nil {
			r.uncertain = true
			return r, err
		}
		switch {
		case err == nil:
			r.value = call.value
			return r, nil
		case redis.HasErrorPrefix(err, "NOSCRIPT") && !load:
			load = true
			continue
		case isPermanent(err):
			return r, fmt.Errorf("redislock: %w", err)
		}
		r.uncertain = r.uncertain || !neverSent(err)
		if err := waitToRepeat(ctx, attempt, deadline, err); err != nil {
			return r, err
		}
	}
}

// waitToRepeat waits before the next attempt, or returns an error if there is no time, or no use, for another one. It does
// not wait before the second attempt: the usual cause is a pooled connection that the server has closed long ago.
func waitToRepeat(ctx context.Context, attempt int, deadline time.Time, cause error) error {
	if err := lockcore.Ended(ctx); err != nil {
		return err
	}
	wait := time.Duration(attempt) * 20 * time.Millisecond
	if attempt > 0 && dialFailed(cause) || time.Until(deadline) <= wait {
		return fmt.Errorf("%w: %w", lock.ErrUnavailable, cause)
	}
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return lockcore.Ended(ctx)
	}
}

// isPermanent reports whether err is an answer that repeating cannot change: the key is of another type, or the script is
// not allowed. All other errors count as unavailable, including those of a failover (LOADING, READONLY, MASTERDOWN,
// CLUSTERDOWN …).
func isPermanent(err error) bool {
	var reply redis.Error
	if !errors.As(err, &reply) {
		return false
	}
	for _, prefix := range []string{"WRONGTYPE", "ERR ", "CROSSSLOT", "NOPERM"} {
		if strings.HasPrefix(reply.Error(), prefix) {
			return true
		}
	}
	return false
}

// dialFailed reports whether no connection could be made.
func dialFailed(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// neverSent reports whether err means that the command did not leave this process.
func neverSent(err error) bool {
	return dialFailed(err) || errors.Is(err, redis.ErrPoolTimeout) || errors.Is(err, redis.ErrClosed)
}
