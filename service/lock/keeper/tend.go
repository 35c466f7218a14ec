package keeper

import (
	"context"
	"errors"
	"time"

	"seckill/service/lock"
)

// tend renews the lease at each third of it, until the hold is over or has to end:
//   - the lease is an explicit one;
//   - the context given to Acquire ended, or the holder was forgotten: a holder that is gone without releasing does
//     not keep its lock;
//   - Options.MaxHold is over;
//   - the backend says that the lock is another's, or does not answer until the deadline: the lock is lost.
//
// It runs on a goroutine of its own, which starts only when a lock is held for that long.
func (h *Hold) tend() {
	for h.is(held) && !h.overdue() {
		pause := time.Until(h.end())
		if h.renews() {
			pause = min(pause, h.renew())
		}
		h.sleep(pause)
	}
}

func (h *Hold) renews() bool {
	most := h.keeper.opts.MaxHold
	return h.Settings.Lease <= 0 && h.scope.parent.Err() == nil && (most <= 0 || time.Since(h.since) < most)
}

// renew renews the lease, and returns when to do so next.
func (h *Hold) renew() time.Duration {
	start, third := time.Now(), h.keeper.opts.Lease/3
	until, err := h.grant.Renew(h.scope.context(), h.end())
	switch {
	case err == nil:
		h.extend(until)
		return third - time.Since(start)
	case errors.Is(err, lock.ErrLost):
		h.Lose()
		return 0
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return 0 // either the hold is over, or it is not renewed any more
	default:
		return third / 10
	}
}

// sleep waits for d, or until the hold's context ends, if it has not.
func (h *Hold) sleep(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	ctx := h.scope.context()
	ended := ctx.Done()
	if ctx.Err() != nil {
		ended = nil
	}
	select {
	case <-timer.C:
	case <-ended:
	}
}
