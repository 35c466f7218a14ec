package redlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-redsync/redsync/v4"
	pools "github.com/go-redsync/redsync/v4/redis"

	"seckill/service/lock"
	"seckill/service/lock/lockcore"
)

// backend takes locks on a majority of the nodes.
type backend struct {
	config Config
	sync   *redsync.Redsync
	nodes  int
}

func newBackend(c Config, nodes []*node) *backend {
	all := make([]pools.Pool, len(nodes))
	for i, n := range nodes {
		all[i] = n
	}
	return &backend{config: c, sync: redsync.New(all...), nodes: len(nodes)}
}

// Acquire implements lockcore.Backend.
func (b *backend) Acquire(ctx context.Context, h *lockcore.Hold) (lockcore.Grant, error) {
	g := b.newGrant(h)
	for {
		err := g.try(ctx, h)
		if ended := lockcore.Ended(ctx); ended != nil && err == nil {
			h.ReleaseLater(g.Release)
			return nil, ended
		}
		if err == nil || !errors.Is(err, lock.ErrHeld) || h.Settings.Try {
			return g, err
		}
		pause := 10*time.Millisecond + rand.N(30*time.Millisecond) // random, so that contenders do not collide again
		if err := lockcore.Wait[any](ctx, h, nil, pause); err != nil {
			return nil, err
		}
	}
}

// grant is a lock on a majority, or what may become one.
type grant struct {
	backend  *backend
	mutex    *redsync.Mutex
	validity time.Duration // required
	budget   time.Duration
}

func (b *backend) newGrant(h *lockcore.Hold) *grant {
	lease, validity := b.config.Lease, b.config.MinValidity
	if d := h.Settings.Lease; d > 0 {
		lease, validity = d, d/2
	}
	budget := min(b.config.Budget, h.Settings.Timeout)
	return &grant{backend: b, validity: validity, budget: budget, mutex: b.sync.NewMutex(h.Key,
		redsync.WithExpiry(lease),
		redsync.WithTries(1),
		redsync.WithDriftFactor(0.01),
		redsync.WithTimeoutFactor(float64(budget)/float64(lease)),
		// Not WithSetNXOnExtend: to take a lock anew is not to extend it.
	)}
}

// try asks all nodes once. What was got in vain is freed on a context of its own; so is a lock with too little left.
func (g *grant) try(ctx context.Context, h *lockcore.Hold) error {
	err := g.mutex.TryLockContext(context.WithoutCancel(ctx))
	if err != nil {
		if _, failed := votes(err); g.backend.nodes-failed >= g.backend.quorum() && !errors.Is(err, redsync.ErrFailed) {
			return lock.ErrHeld
		}
		return fmt.Errorf("%w: %w", lock.ErrUnavailable, err)
	}
	if left := time.Until(g.mutex.Until()); left < g.validity {
		h.ReleaseLater(g.Release)
		return fmt.Errorf("%w: of the lease only %v were left", lock.ErrUnavailable, left)
	}
	return nil
}

// votes counts the nodes that said that the lock is another's, or gone, and those that did not answer.
func votes(err error) (refused, failed int) {
	switch e := err.(type) {
	case *redsync.RedisError:
		return 0, 1
	case *redsync.ErrNodeTaken:
		return 1, 0
	case *redsync.ErrTaken: // a majority, and redsync says no more
		return len(e.Nodes), 0
	case interface{ Unwrap() []error }:
		for _, each := range e.Unwrap() {
			r, f := votes(each)
			refused, failed = refused+r, failed+f
		}
		return refused, failed
	}
	if err == redsync.ErrLockAlreadyExpired {
		return 1, 0
	}
	return 0, 0
}

// Token implements lockcore.Grant: there is none. Independent servers have no common order to number grants by.
func (g *grant) Token() (uint64, bool) { return 0, false }

// ValidUntil implements lockcore.Grant.
func (g *grant) ValidUntil() time.Time { return g.mutex.Until() }

// Renew implements lockcore.Grant.
func (g *grant) Renew(ctx context.Context, by time.Time) (time.Time, error) {
	ctx, cancel := context.WithDeadline(ctx, sooner(by, time.Now().Add(g.budget)))
	defer cancel()
	ok, err := g.mutex.ExtendContext(ctx)
	if ok {
		return g.mutex.Until(), nil
	}
	return time.Time{}, g.verdict(err)
}

// SetDepth implements lockcore.Grant. The nodes don't know the depth, but whether the lock is there.
func (g *grant) SetDepth(ctx context.Context, _ int, by time.Time) error {
	asked, cancel := context.WithDeadline(context.WithoutCancel(ctx), sooner(by, time.Now().Add(g.budget)))
	defer cancel()
	//lint:ignore SA1019 Until knows only this process's side; here the nodes are asked, and the deadline is checked apart
	ok, err := g.mutex.ValidContext(asked)
	if ended := lockcore.Ended(ctx); ended != nil {
		return ended
	}
	if ok {
		return nil
	}
	return g.verdict(err)
}

// Release implements lockcore.Grant.
func (g *grant) Release() error {
	ctx, cancel := context.WithTimeout(context.Background(), g.budget)
	defer cancel()
	ok, err := g.mutex.UnlockContext(ctx)
	if ok {
		return nil
	}
	return g.verdict(err)
}

// verdict is what an answer without a majority means: the lock is lost if so many nodes say that it is not ours that the
// others are no majority; otherwise that is unknown.
func (g *grant) verdict(err error) error {
	if refused, _ := votes(err); refused > g.backend.nodes-g.backend.quorum() {
		return lock.ErrLost
	}
	return fmt.Errorf("%w: %w", lock.ErrUnavailable, err)
}

func (b *backend) quorum() int { return b.nodes/2 + 1 }

func sooner(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
