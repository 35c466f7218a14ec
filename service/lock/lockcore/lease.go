package lockcore

import (
	"context"
	"runtime"
	"sync"

	"seckill/service/lock"
)

// lease is what one Acquire returned. A Hold that was entered again has several leases.
type lease struct {
	hold    *Hold
	ctx     leaseContext
	outer   *lease             // the lease whose context was given to Acquire, for whatever key
	cancel  context.CancelFunc // ends ctx; nil for the first lease, whose context ends with the hold
	cleanup runtime.Cleanup

	once sync.Once
	err  error
}

// Context implements lock.Lease. The context is part of the lease, so a lease counts as forgotten only when neither the
// lease nor its context, nor a context derived from it, is in use.
func (l *lease) Context() context.Context { return &l.ctx }

// Token implements lock.Lease.
func (l *lease) Token() (uint64, bool) { return l.hold.grant.Token() }

// Release implements lock.Lease. If the backend does not answer, the release is repeated in the background.
func (l *lease) Release(context.Context) error {
	l.once.Do(func() {
		if l.cancel != nil {
			l.cancel()
		}
		l.cleanup.Stop()
		l.err = l.hold.release()
	})
	return l.err
}

// leaseContext is the context of a lease. It carries the lease for re-entry, and Err looks at the clock: after a pause of
// the process, the timer that cancels the context may be late.
type leaseContext struct {
	context.Context
	lease *lease
}

// Err implements context.Context.
func (c *leaseContext) Err() error {
	h := c.lease.hold
	if c.Context.Err() == nil && h.is(held) {
		h.checkExpiry()
	}
	if h.is(lost) {
		h.cancel(lock.ErrLost) // MarkLost may still be about to do so
	}
	return c.Context.Err()
}

// Value implements context.Context.
func (c *leaseContext) Value(key any) any {
	if core, ok := key.(*Core); ok && core == c.lease.hold.core {
		return c.lease
	}
	return c.Context.Value(key)
}
