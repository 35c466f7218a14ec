package lockcore

import (
	"context"
	"errors"
	"time"

	"seckill/service/lock"
)

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
