package redislock

import (
	"context"
	"errors"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"seckill/service/lock"
)

// hold is one lock that this process holds, however often it was entered. It must not refer to its leases: that they
// are gone is how a forgotten hold is found out.
type hold struct {
	locker *Locker
	slot   *slot
	key    string
	name   any // the key, as it goes into commands
	owner  any // likewise
	lease  time.Duration
	ms     any // lease in ms
	renew  bool
	token  uint64
	since  time.Time

	ctx    context.Context // what the outermost lease's context is made of
	cancel context.CancelCauseFunc
	timer  *time.Timer // starts tend

	deadline atomic.Int64 // ns after since: the lock can be trusted until then
	state    atomic.Int32

	mu    sync.Mutex // held while the depth changes, the round trip included
	depth int
}

// The states of a hold. It leaves held once.
const (
	held int32 = iota
	released
	lost
)

func newHold(l *Locker, s *slot, w *wish) *hold {
	h := &hold{locker: l, slot: s, key: w.key, name: w.key, owner: l.newOwner(), lease: l.opts.Lease, ms: l.lease, renew: true, depth: 1}
	if d := w.settings.Lease; d > 0 {
		ms := max(1, (d + time.Millisecond - 1).Milliseconds())
		h.lease, h.ms, h.renew = time.Duration(ms)*time.Millisecond, ms, false
	}
	return h
}

// grant turns h into the lease that was granted in answer to what was sent at that time.
func (h *hold) grant(ctx context.Context, sent time.Time, token uint64, outer *lease) (*lease, error) {
	h.since, h.token = sent, token
	h.extend(sent)
	h.ctx, h.cancel = context.WithCancelCause(ctx)
	first := h.lease / 3
	if !h.renew {
		first = time.Until(h.end())
	}
	h.timer = time.AfterFunc(first, h.tend)
	if err := h.locker.settle(h.slot, h); err != nil {
		h.finish(lock.ErrClosed)
		return nil, err
	}
	granted := &lease{hold: h, ctx: leaseContext{Context: h.ctx}, outer: outer}
	granted.ctx.lease = granted
	granted.cleanup = runtime.AddCleanup(granted, (*hold).forgotten, h)
	return granted, nil
}

// extend notes that the lease was set, or set anew, by what was sent at that time. The server's clock may be faster
// than ours by a hundredth.
func (h *hold) extend(sent time.Time) {
	h.deadline.Store(int64(sent.Sub(h.since) + h.lease - h.lease/100))
}

func (h *hold) end() time.Time { return h.since.Add(time.Duration(h.deadline.Load())) }

func (h *hold) isHeld() bool { return h.state.Load() == held }

// lose is called when the lock can no longer be trusted. It does nothing if the hold is over.
func (h *hold) lose() {
	if h.state.CompareAndSwap(held, lost) {
		h.cancel(lock.ErrLost)
		h.timer.Stop()
		h.locker.leave(h.key, h.slot, nil)
	}
}

// overdue loses the lock if its time is over.
func (h *hold) overdue() bool {
	if time.Since(h.since) < time.Duration(h.deadline.Load()) {
		return false
	}
	h.lose()
	return true
}

// reenter deepens the hold for a caller whose context derives from one of its leases.
func (h *hold) reenter(ctx context.Context, outer *lease, s lock.Settings) (lock.Lease, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	timeout := h.locker.opts.Timeout
	if s.Timeout > 0 {
		timeout = s.Timeout
	}
	if err := h.note(ctx, h.depth+1, timeout); err != nil {
		return nil, err
	}
	h.depth++
	inner, cancel := context.WithCancel(ctx)
	entered := &lease{hold: h, ctx: leaseContext{Context: inner}, outer: outer, cancel: cancel}
	entered.ctx.lease = entered
	entered.cleanup = runtime.AddCleanup(entered, func(cancel context.CancelFunc) {
		cancel()
		h.forgotten()
	}, cancel)
	return entered, nil
}

// note writes the depth to Redis, and learns whether the lock is still there.
func (h *hold) note(ctx context.Context, depth int, timeout time.Duration) error {
	if h.overdue() || !h.isHeld() {
		return lock.ErrLost
	}
	a, err := h.locker.exchange(ctx, &h.locker.scripts.hold, time.Now().Add(timeout),
		[]any{h.name}, h.owner, strconv.Itoa(depth), "0")
	if err == nil && a.n == 0 {
		h.lose()
		return lock.ErrLost
	}
	return err
}

// release undoes one entry; the last one frees the lock.
func (h *hold) release() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.depth--; h.depth > 0 {
		if h.state.Load() == released {
			return nil // by Close
		}
		return h.note(context.Background(), h.depth, h.locker.opts.Timeout)
	}
	return h.finish(context.Canceled)
}

// finish frees the lock, whatever its depth, and cancels its context with cause.
func (h *hold) finish(cause error) error {
	if h.overdue() || !h.state.CompareAndSwap(held, released) {
		if h.state.Load() == lost {
			return lock.ErrLost
		}
		return nil // Close was first
	}
	h.cancel(cause)
	h.timer.Stop()
	a, err := h.locker.sendRelease(h)
	h.locker.leave(h.key, h.slot, nil)
	switch {
	case errors.Is(err, lock.ErrUnavailable):
		h.locker.spawn(func() { h.locker.giveBack(h) })
		return err
	case err != nil:
		return err
	case a.n == 0 && !a.repeated: // if repeated, the attempt without an answer freed it
		return lock.ErrLost
	}
	return nil
}

// forgotten is called when nobody can reach a lease any more that was not released: it counts as released.
func (h *hold) forgotten() {
	h.locker.spawn(func() { _ = h.release() })
}
