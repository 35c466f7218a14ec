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

// grant is a lock on a majority of the servers, or the attempt to get it.
type grant struct {
	backend     *backend
	mutex       *redsync.Mutex
	minValidity time.Duration
	budget      time.Duration
}

func (b *backend) newGrant(h *lockcore.Hold) *grant {
	lease, minValidity := b.config.Lease, b.config.MinValidity
	if d := h.Settings.Lease; d > 0 {
		lease, minValidity = d, d/2
	}
	budget := min(b.config.Budget, h.Settings.Timeout)
	return &grant{backend: b, minValidity: minValidity, budget: budget, mutex: b.sync.NewMutex(h.Key,
		redsync.WithExpiry(lease),
		redsync.WithTries(1),
		redsync.WithDriftFactor(0.01),
		redsync.WithTimeoutFactor(float64(budget)/float64(lease)),
		// Not WithSetNXOnExtend: it would take a lost lock again, and report that as an extension.
	)}
}

// try asks all servers once. It ignores the end of ctx, so redsync can release what a failed attempt got. A lock with too
// little validity left is released again.
func (g *grant) try(ctx context.Context, h *lockcore.Hold) error {
	err := g.mutex.TryLockContext(context.WithoutCancel(ctx))
	if err != nil {
		if _, failed := votes(err); g.backend.nodes-failed >= g.backend.quorum() && !errors.Is(err, redsync.ErrFailed) {
			return lock.ErrHeld
		}
		return fmt.Errorf("%w: %w", lock.ErrUnavailable, err)
	}
	if left := time.Until(g.mutex.Until()); left < g.minValidity {
		h.ReleaseLater(g.Release)
		return fmt.Errorf("%w: only %v of the lease were left", lock.ErrUnavailable, left)
	}
	return nil
}

// votes counts the servers that answered that the lock belongs to another or is gone, and those that did not answer.
func votes(err error) (refused, failed int) {
	switch e := err.(type) { //nolint:errorlint // it walks the tree of errors itself
	case *redsync.RedisError:
		return 0, 1
	case *redsync.ErrNodeTaken:
		return 1, 0
	case *redsync.ErrTaken: // from a majority; redsync does not report the others
		return len(e.Nodes), 0
	case interface{ Unwrap() []error }:
		for _, each := range e.Unwrap() {
			r, f := votes(each)
			refused, failed = refused+r, failed+f
		}
		return refused, failed
	}
	if errors.Is(err, redsync.ErrLockAlreadyExpired) {
		return 1, 0
	}
	return 0, 0
}

// Token implements lockcore.Grant. There is none: independent servers have no common order to number grants by.
func (g *grant) Token() (uint64, bool) { return 0, false }

// ValidUntil implements lockcore.Grant.
func (g *grant) ValidUntil() time.Time { return g.mutex.Until() }

// Renew implements lockcore.Grant.
func (g *grant) Renew(ctx context.Context, deadline time.Time) (time.Time, error) {
	ctx, cancel := g.limit(ctx, deadline)
	defer cancel()
	ok, err := g.mutex.ExtendContext(ctx)
	if ok {
		return g.mutex.Until(), nil
	}
	return time.Time{}, g.withoutMajority(err)
}

// SetDepth implements lockcore.Grant. The servers do not store the depth; the request checks that the lock exists.
func (g *grant) SetDepth(ctx context.Context, _ int, deadline time.Time) error {
	limited, cancel := g.limit(context.WithoutCancel(ctx), deadline)
	defer cancel()
	ok, err := g.mutex.ValidContext(limited) //nolint:staticcheck // its replacement, Until, does not ask the servers
	if ended := lockcore.Ended(ctx); ended != nil {
		return ended
	}
	if ok {
		return nil
	}
	return g.withoutMajority(err)
}

// Release implements lockcore.Grant.
func (g *grant) Release() error {
	ctx, cancel := context.WithTimeout(context.Background(), g.budget)
	defer cancel()
	ok, err := g.mutex.UnlockContext(ctx)
	if ok {
		return nil
	}
	return g.withoutMajority(err)
}

// limit bounds ctx by the deadline and by the budget.
func (g *grant) limit(ctx context.Context, deadline time.Time) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, min(g.budget, time.Until(deadline)))
}

// withoutMajority returns what an answer without a majority means. The lock is lost if so many servers refused that the
// others are no majority. Otherwise it is unknown whether the lock is still there.
func (g *grant) withoutMajority(err error) error {
	if refused, _ := votes(err); refused > g.backend.nodes-g.backend.quorum() {
		return lock.ErrLost
	}
	return fmt.Errorf("%w: %w", lock.ErrUnavailable, err)
}

func (b *backend) quorum() int { return b.nodes/2 + 1 }
