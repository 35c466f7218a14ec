// Package lockcore implements what all distributed locks have in common. A backend only adds how a lock is taken, renewed
// and released on its servers. "The life of a lock" in service/lock/README.md lists the steps and their files.
package lockcore

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"

	"seckill/service/lock"
)

// Backend takes locks on servers.
type Backend interface {
	// Acquire takes the lock h.Key. It waits with [Wait] while the lock is held by another, and returns lock.ErrHeld
	// at once if h.Settings.Try is set. Each server answer takes h.Settings.Timeout at most; after that, the error
	// wraps lock.ErrUnavailable. When Acquire returns an error it leaves nothing behind, see Hold.ReleaseLater.
	Acquire(ctx context.Context, h *Hold) (Grant, error)
}

// Grant is a lock that the backend has taken. Its methods are not called concurrently, with one exception: Release may
// be called while Renew or SetDepth runs, after the context of Renew has ended.
type Grant interface {
	// Token returns the fencing token; ok is false if the backend has no tokens.
	Token() (token uint64, ok bool)
	// ValidUntil returns the time until which the lock can be trusted without a renewal.
	ValidUntil() time.Time
	// Renew extends the lease and returns the time until which the lock can be trusted now. It returns before the deadline, with
	// lock.ErrLost if the lock belongs to another.
	Renew(ctx context.Context, deadline time.Time) (validUntil time.Time, err error)
	// SetDepth stores how often the lock was entered. It returns before the deadline, with lock.ErrLost if the lock
	// belongs to another.
	SetDepth(ctx context.Context, depth int, deadline time.Time) error
	// Release gives the lock back within a bounded time. It returns lock.ErrLost if the lock belonged to another, and
	// lock.ErrUnavailable if it should be called again.
	Release() error
}

// Options configure a Core. Lease and Timeout are required.
type Options struct {
	// Lease is how long a lock outlives its last renewal. A third of it is the interval of renewals.
	Lease time.Duration
	// Timeout bounds an answer of the backend, for callers who set no timeout themselves.
	Timeout time.Duration
	// Queue lets one caller of this process at a time ask the backend for a key. The others queue, first come, first
	// served. Leave it off if the backend has a fair queue itself.
	Queue bool
}

// Core is a lock.Locker on top of a Backend.
type Core struct {
	backend Backend
	opts    Options

	closed     chan struct{}  // closed by Close, under mu
	background sync.WaitGroup // running acquisitions and background releases; Close waits for them

	mu     sync.Mutex            // guards what follows
	holds  map[*Hold]struct{}    // all locks that are held
	queues map[string]*list.List // by key, while a caller holds the lock or asks the backend for it
}

var _ lock.Locker = (*Core)(nil)

// New returns a Core for backend.
func New(backend Backend, opts Options) *Core {
	return &Core{
		backend: backend,
		opts:    opts,
		closed:  make(chan struct{}),
		holds:   make(map[*Hold]struct{}),
		queues:  make(map[string]*list.List),
	}
}

// Acquire implements lock.Locker.
func (c *Core) Acquire(ctx context.Context, key string, opts ...lock.Option) (lock.Lease, error) {
	if err := Ended(ctx); err != nil {
		return nil, err
	}
	if key == "" {
		return nil, errors.New("lock: empty key")
	}
	settings := lock.NewSettings(opts)
	if settings.Timeout <= 0 {
		settings.Timeout = c.opts.Timeout
	}
	outer, _ := ctx.Value(c).(*lease)
	for l := outer; l != nil; l = l.outer {
		if l.hold.Key == key && l.hold.is(held) {
			return l.hold.reenter(ctx, outer, settings.Timeout)
		}
	}
	h := newHold(c, key, settings)
	if err := c.enterQueue(ctx, h); err != nil {
		return nil, err
	}
	defer c.background.Done()
	grant, err := c.backend.Acquire(ctx, h)
	if err != nil {
		c.leaveQueue(h, err)
		return nil, err
	}
	return h.start(ctx, grant, outer)
}

// Ended returns why ctx has ended, or nil. If it ended because a lease was lost, the error is lock.ErrLost.
func Ended(ctx context.Context) error {
	err := ctx.Err()
	if err != nil && errors.Is(context.Cause(ctx), lock.ErrLost) {
		return context.Cause(ctx)
	}
	return err
}

// Close implements lock.Locker. It releases all locks at the same time, and gives up the background releases.
func (c *Core) Close() error {
	c.mu.Lock()
	if c.isClosed() {
		c.mu.Unlock()
		return nil
	}
	close(c.closed)
	var releases sync.WaitGroup
	for h := range c.holds {
		releases.Go(func() { _ = h.end(lock.ErrClosed) })
	}
	c.mu.Unlock()
	releases.Wait()
	c.background.Wait()
	return nil
}

func (c *Core) isClosed() bool {
	select {
	case <-c.closed:
		return true
	default:
		return false
	}
}

// goBackground runs f in the background. It does nothing after Close.
func (c *Core) goBackground(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.isClosed() {
		c.background.Go(f)
	}
}

// releaseLater calls release in the background until its error is not lock.ErrUnavailable. It gives up after one lease,
// because the lock is free then.
func (c *Core) releaseLater(release func() error) {
	c.goBackground(func() {
		end := time.Now().Add(c.opts.Lease)
		for wait := 20 * time.Millisecond; errors.Is(release(), lock.ErrUnavailable) && time.Now().Before(end); {
			select {
			case <-time.After(wait):
			case <-c.closed:
				return
			}
			wait = min(2*wait, time.Second)
		}
	})
}
