package keeper

import (
	"context"
	"runtime"
	"sync"
	"time"

	"seckill/service/lock"
)

// lease is one entry into a hold.
type lease struct {
	hold    *Hold
	ctx     leaseContext
	outer   *lease // the lease whose context this one was acquired under, of whatever key
	cancel  context.CancelFunc
	cleanup runtime.Cleanup

	once sync.Once
	err  error
}

var _ lock.Lease = (*lease)(nil)

// Context implements lock.Lease. What it returns is part of the lease, so that a lease counts as forgotten only when
// neither is in use, nor a context that derives from it.
func (l *lease) Context() context.Context { return &l.ctx }

// Token implements lock.Lease.
func (l *lease) Token() (uint64, bool) { return l.hold.grant.Token() }

// Release implements lock.Lease. Where the backend does not answer, it goes on trying in the background.
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

// leaseContext knows its lease, and looks at the clock when it is asked whether it is over: after a pause of the
// process the timer that would cancel it may be late.
type leaseContext struct {
	lease *lease
	inner context.Context // of a lease that deepens a hold; nil: the hold's own
}

func (c *leaseContext) base() context.Context {
	if c.inner != nil {
		return c.inner
	}
	return c.lease.hold.scope.context()
}

// Deadline implements context.Context.
func (c *leaseContext) Deadline() (time.Time, bool) { return c.base().Deadline() }

// Done implements context.Context.
func (c *leaseContext) Done() <-chan struct{} { return c.base().Done() }

// Err implements context.Context.
func (c *leaseContext) Err() error {
	err, h := c.base().Err(), c.lease.hold
	if err != nil {
		return err
	}
	if h.is(held) {
		h.overdue()
	}
	if h.is(lost) { // whoever found that out may not have come to end the context yet
		h.scope.stop(lock.ErrLost)
	}
	return c.base().Err()
}

// Value implements context.Context.
func (c *leaseContext) Value(key any) any {
	if k, ok := key.(*Keeper); ok && k == c.lease.hold.keeper {
		return c.lease
	}
	return c.base().Value(key)
}
