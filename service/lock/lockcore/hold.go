package lockcore

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"seckill/service/lock"
)

// Hold is one lock that this process wants or holds. Several leases can share it, by re-entry:
//
//	caller → lease ─┐
//	caller → lease ─┴→ Hold → Grant (the lock on the servers)
//
// A Hold must not refer to its leases: the garbage collector reports forgotten leases, and finds only what nothing refers
// to.
type Hold struct {
	Key      string
	Settings lock.Settings // Timeout is always set

	core     *Core
	waitOver <-chan time.Time // delivers when the caller does not want to wait any longer; nil: never

	grant      Grant
	ctx        context.Context // ends with the hold, or with the context given to Acquire
	cancel     context.CancelCauseFunc
	renewTimer *time.Timer
	validUntil atomic.Pointer[time.Time]
	state      atomic.Int32

	mu    sync.Mutex // locked while the depth changes, on the servers too
	depth int
}

// The states of a Hold. It begins wanted, becomes held, and ends released or lost.
const (
	wanted int32 = iota
	held
	released
	lost
)

func newHold(c *Core, key string, s lock.Settings) *Hold {
	h := &Hold{Key: key, Settings: s, core: c, depth: 1}
	if s.Wait > 0 {
		h.waitOver = time.After(s.Wait)
	}
	return h
}

// start turns a grant into a held lock, and returns its first lease.
func (h *Hold) start(ctx context.Context, grant Grant, outer *lease) (lock.Lease, error) {
	h.grant = grant
	h.ctx, h.cancel = context.WithCancelCause(ctx)
	until := grant.ValidUntil()
	h.validUntil.Store(&until)
	if err := h.markHeld(); err != nil {
		h.cancel(err)
		if errors.Is(grant.Release(), lock.ErrUnavailable) {
			h.ReleaseLater(grant.Release)
		}
		h.core.leaveQueue(h, err)
		return nil, err
	}
	l := &lease{hold: h, outer: outer}
	l.ctx = leaseContext{h.ctx, l}
	l.cleanup = runtime.AddCleanup(l, (*Hold).releaseForgotten, h)
	return l, nil
}

// markHeld fails if the Core was closed, or the lock lost, during the acquisition.
func (h *Hold) markHeld() error {
	h.core.mu.Lock()
	defer h.core.mu.Unlock()
	if h.core.isClosed() {
		return lock.ErrClosed
	}
	h.renewTimer = time.AfterFunc(time.Hour, h.renewOrExpire) // MarkLost needs it; its time is set below
	if !h.state.CompareAndSwap(wanted, held) {
		h.renewTimer.Stop()
		return lock.ErrLost
	}
	h.core.holds[h] = struct{}{}
	h.renewTimer.Reset(h.firstRenewal())
	return nil
}

func (h *Hold) is(state int32) bool { return h.state.Load() == state }

// checkExpiry reports whether the lock can no longer be trusted by this process's clock, and marks such a lock as lost.
func (h *Hold) checkExpiry() bool {
	if time.Now().Before(*h.validUntil.Load()) {
		return false
	}
	h.MarkLost()
	return true
}

// MarkLost ends the hold because the lock can no longer be trusted. It does nothing if the hold has ended already. A
// Grant's methods must not wait for a goroutine that calls it.
func (h *Hold) MarkLost() {
	if h.state.CompareAndSwap(wanted, lost) {
		return // start returns ErrLost
	}
	if !h.state.CompareAndSwap(held, lost) {
		return
	}
	h.cancel(lock.ErrLost)
	h.renewTimer.Stop()
	h.core.leaveQueue(h, nil)
	h.ReleaseLater(h.grant.Release) // the servers may still have it
}

// ReleaseLater calls release in the background until its error is not lock.ErrUnavailable.
func (h *Hold) ReleaseLater(release func() error) { h.core.releaseLater(release) }

// Closed returns a channel that is closed when the Core is.
func (h *Hold) Closed() <-chan struct{} { return h.core.closed }

// reenter returns another lease, for a caller whose context derives from one of the leases.
func (h *Hold) reenter(ctx context.Context, outer *lease, timeout time.Duration) (lock.Lease, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.setDepth(ctx, h.depth+1, timeout); err != nil {
		return nil, err
	}
	h.depth++
	inner, cancel := context.WithCancel(ctx)
	l := &lease{hold: h, outer: outer, cancel: cancel}
	l.ctx = leaseContext{inner, l}
	l.cleanup = runtime.AddCleanup(l, func(h *Hold) {
		cancel()
		h.releaseForgotten()
	}, h)
	return l, nil
}

// setDepth stores the depth at the backend. This also finds out whether the lock still exists there.
func (h *Hold) setDepth(ctx context.Context, depth int, timeout time.Duration) error {
	if h.checkExpiry() || !h.is(held) {
		return lock.ErrLost
	}
	err := h.grant.SetDepth(ctx, depth, time.Now().Add(timeout))
	if errors.Is(err, lock.ErrLost) {
		h.MarkLost()
	}
	return err
}

// release ends one lease. The last one releases the lock.
func (h *Hold) release() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.depth--
	if h.depth == 0 {
		return h.end(context.Canceled)
	}
	if h.is(released) {
		return nil // Close has released the lock
	}
	return h.setDepth(context.Background(), h.depth, h.core.opts.Timeout)
}

// end releases the lock, whatever its depth is, and cancels its context with cause.
func (h *Hold) end(cause error) error {
	if h.checkExpiry() || !h.state.CompareAndSwap(held, released) {
		if h.is(lost) {
			return lock.ErrLost
		}
		return nil // Close has released the lock
	}
	h.cancel(cause)
	h.renewTimer.Stop()
	err := h.grant.Release()
	h.core.leaveQueue(h, nil)
	if errors.Is(err, lock.ErrUnavailable) {
		h.ReleaseLater(h.grant.Release)
	}
	return err
}

// releaseForgotten releases a lease that the garbage collector found unreachable.
func (h *Hold) releaseForgotten() {
	h.core.goBackground(func() { _ = h.release() })
}

// firstRenewal returns when renewOrExpire runs for the first time.
func (h *Hold) firstRenewal() time.Duration {
	if h.Settings.Lease > 0 {
		return time.Until(*h.validUntil.Load())
	}
	return h.core.opts.Lease / 3
}

// renewOrExpire renews the lease and sets the timer for the next renewal. A lock that is no longer renewed is lost when
// its time is over. A timer calls it, so a held lock costs no goroutine.
func (h *Hold) renewOrExpire() {
	if !h.is(held) || h.checkExpiry() {
		return
	}
	next := time.Until(*h.validUntil.Load())
	if h.mayRenew() {
		next = min(h.renew(), time.Until(*h.validUntil.Load()))
	}
	if h.is(held) {
		h.renewTimer.Reset(next)
	}
}

// mayRenew reports whether the lease may still be renewed. It may not if the caller set an explicit lease, or if the
// context given to Acquire has ended: a holder that is gone must not keep its lock.
func (h *Hold) mayRenew() bool { return h.Settings.Lease <= 0 && h.ctx.Err() == nil }

// renew renews the lease once, and returns when to do so next. Without an answer it tries again soon, until the lease is
// over.
func (h *Hold) renew() time.Duration {
	start, interval := time.Now(), h.core.opts.Lease/3
	until, err := h.grant.Renew(h.ctx, *h.validUntil.Load())
	switch {
	case err == nil:
		h.validUntil.Store(&until)
		return interval - time.Since(start)
	case errors.Is(err, lock.ErrLost):
		h.MarkLost()
		return 0
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return 0 // the hold has ended, or is no longer renewed
	default:
		return interval / 10
	}
}
