package redislock

import "time"

// tend renews the lease at each third of it, until the hold is over or has to end:
//   - the context given to Acquire ended, or the holder was forgotten (see hold.forgotten): a holder that is gone
//     without releasing does not keep its lock;
//   - Options.MaxHold is over;
//   - Redis says that the lock is another's, or does not answer until the deadline: the lock is lost.
//
// It runs on a goroutine of its own, which starts only when a lock is held for that long.
func (h *hold) tend() {
	pause := h.lease / 3
	for h.isHeld() && !h.overdue() {
		if h.renew && h.ctx.Err() == nil && (h.locker.opts.MaxHold <= 0 || time.Since(h.since) < h.locker.opts.MaxHold) {
			pause = h.prolong()
		} else {
			pause = time.Until(h.end())
		}
		if !h.sleep(min(pause, time.Until(h.end()))) {
			return
		}
	}
}

// prolong renews the lease, and returns when to do it next.
func (h *hold) prolong() time.Duration {
	sent := time.Now()
	a, err := h.locker.exchange(h.ctx, &h.locker.scripts.hold, h.end(), []any{h.name}, h.owner, "0", h.ms)
	switch {
	case err != nil:
		return h.lease / 30
	case a.n == 0:
		h.lose()
		return 0
	default:
		h.extend(sent)
		return h.lease/3 - time.Since(sent)
	}
}

// sleep reports whether the hold may need tending after d. When the context given to Acquire ends, it returns early, so
// that tend takes notice.
func (h *hold) sleep(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	ended := h.ctx.Done()
	if h.ctx.Err() != nil {
		ended = nil
	}
	select {
	case <-timer.C:
	case <-ended:
	}
	return h.isHeld()
}
