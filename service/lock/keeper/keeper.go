// Package keeper is what all locks have in common, whatever backend keeps them: re-entry by context, the local queue,
// leases and their renewal, loss by the holder's own clock, release, forgotten holders, and closing. A backend adds how
// a lock is taken, renewed and freed.
package keeper

import (
	"context"
	"errors"
	"sync"
	"time"

	"seckill/service/lock"
)

// Backend takes locks.
type Backend interface {
	// Take returns when the lock h.Key is h's, or else with what Acquire is to return: ctx's error (see Ended),
	// lock.ErrHeld at once with h.Settings.Try or when h.Expired, lock.ErrClosed when h.Closed, or
	// lock.ErrUnavailable. What it returns an error for leaves nothing behind, see Keeper.GiveBack.
	Take(ctx context.Context, h *Hold) (Grant, error)
}

// Grant is a lock that was taken. Its methods are not called concurrently, except that Free may come while Renew is
// under way, whose context is then over.
type Grant interface {
	// Token returns the fencing token, if there is one.
	Token() (uint64, bool)
	// Until returns how long the lock can be trusted without a renewal; zero: until the backend calls Hold.Lose.
	Until() time.Time
	// Renew prolongs the lease, and returns how long the lock can be trusted then. It returns by the given time,
	// with lock.ErrLost if the lock is another's. It is not called when Until is zero.
	Renew(ctx context.Context, by time.Time) (until time.Time, err error)
	// Note tells the depth of the hold when it changes. It returns lock.ErrLost if the lock is another's.
	Note(ctx context.Context, depth int, by time.Time) error
	// Free gives the lock back, within a bounded time. It returns lock.ErrLost if the lock was another's, and
	// lock.ErrUnavailable if it is worth calling again.
	Free() error
}

// Options tune a Keeper. All times are required.
type Options struct {
	// Lease is how long a lock outlives its last renewal, or its session. It is renewed at a third of that.
	Lease time.Duration
	// MaxHold bounds how long a hold is renewed, whatever its holder does. Zero: no bound.
	MaxHold time.Duration
	// Timeout bounds the answer of the backend where Acquire does not.
	Timeout time.Duration
	// Queue lets one goroutine at a time contend for a key; the others queue in this process, first come, first served.
	Queue bool
}

// Keeper is a lock.Locker over a Backend.
type Keeper struct {
	backend Backend
	opts    Options

	closed     chan struct{}
	background sync.WaitGroup // what Close waits for: acquisitions under way, and what was spawned

	mu    sync.Mutex
	shut  bool
	holds map[*Hold]struct{}
	slots map[string]*slot
}

var _ lock.Locker = (*Keeper)(nil)

// New returns a Keeper of backend's locks.
func New(backend Backend, opts Options) *Keeper {
	return &Keeper{
		backend: backend,
		opts:    opts,
		closed:  make(chan struct{}),
		holds:   make(map[*Hold]struct{}),
		slots:   make(map[string]*slot),
	}
}

// Acquire implements lock.Locker.
func (k *Keeper) Acquire(ctx context.Context, key string, opts ...lock.Option) (lock.Lease, error) {
	if err := Ended(ctx); err != nil {
		return nil, err
	}
	if key == "" {
		return nil, errors.New("lock: empty key")
	}
	settings := lock.NewSettings(opts)
	if settings.Timeout <= 0 {
		settings.Timeout = k.opts.Timeout
	}
	outer, _ := ctx.Value(k).(*lease)
	for o := outer; o != nil; o = o.outer {
		if o.hold.Key == key && o.hold.is(held) {
			return o.hold.reenter(ctx, outer, settings)
		}
	}
	return k.take(ctx, outer, newHold(k, key, settings))
}

// take waits for the place in this process first, then for the lock.
func (k *Keeper) take(ctx context.Context, outer *lease, h *Hold) (lock.Lease, error) {
	defer h.stopWaiting()
	if err := k.enter(ctx, h); err != nil {
		return nil, err
	}
	defer k.background.Done()
	grant, err := k.backend.Take(ctx, h)
	if err != nil {
		h.leave(err)
		return nil, err
	}
	return h.granted(ctx, grant, outer)
}

// Ended returns why ctx is over, if it is. Where that is the loss of a lease, it is what the caller needs to know.
func Ended(ctx context.Context) error {
	err := ctx.Err()
	if err != nil && errors.Is(context.Cause(ctx), lock.ErrLost) {
		return context.Cause(ctx)
	}
	return err
}

// Close implements lock.Locker. It frees what is held, each lock at the same time. What is to be given back in the
// background is given up.
func (k *Keeper) Close() error {
	k.mu.Lock()
	if k.shut {
		k.mu.Unlock()
		return nil
	}
	k.shut = true
	close(k.closed)
	open := make([]*Hold, 0, len(k.holds))
	for h := range k.holds {
		open = append(open, h)
	}
	k.mu.Unlock()
	var freed sync.WaitGroup
	for _, h := range open {
		freed.Go(func() { _ = h.finish(lock.ErrClosed) })
	}
	freed.Wait()
	k.background.Wait()
	return nil
}

// Spawn runs f in the background; Close waits for it. It does nothing when the Keeper is closed.
func (k *Keeper) Spawn(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.shut {
		k.background.Go(f)
	}
}

// GiveBack calls free in the background until it returns something else than lock.ErrUnavailable, for as long as a
// lease lasts: after that the lock is free anyway.
func (k *Keeper) GiveBack(free func() error) {
	k.Spawn(func() {
		end := time.Now().Add(k.opts.Lease)
		for wait := 20 * time.Millisecond; errors.Is(free(), lock.ErrUnavailable) && time.Now().Before(end); {
			timer := time.NewTimer(wait)
			select {
			case <-timer.C:
			case <-k.closed:
				timer.Stop()
				return
			}
			wait = min(2*wait, time.Second)
		}
	})
}
