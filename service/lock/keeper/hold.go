package keeper

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"seckill/service/lock"
)

// Hold is one lock that this process wants or holds, however often it was entered. It must not refer to its leases:
// that they are gone is how a forgotten hold is found out.
type Hold struct {
	Key      string
	Settings lock.Settings // Timeout is set

	keeper  *Keeper
	waiting *time.Timer // bounds the wait, if it is bounded

	grant    Grant
	since    time.Time
	scope    scope
	timer    *time.Timer  // starts tend; nil if there is nothing to tend
	deadline atomic.Int64 // ns after since: the lock can be trusted until then
	state    atomic.Int32

	mu    sync.Mutex // held while the depth changes, the backend's answer included
	depth int
}

// The states of a hold, in their order; each is left once.
const (
	wanted int32 = iota
	held
	released
	lost
)

func newHold(k *Keeper, key string, s lock.Settings) *Hold {
	h := &Hold{Key: key, Settings: s, keeper: k, depth: 1, since: time.Now()}
	h.deadline.Store(math.MaxInt64)
	if s.Wait > 0 {
		h.waiting = time.NewTimer(s.Wait)
	}
	return h
}

// Expired delivers when the wait has lasted for as long as Acquire was told to wait; nil: there is no bound.
func (h *Hold) Expired() <-chan time.Time {
	if h.waiting == nil {
		return nil
	}
	return h.waiting.C
}

// Closed is closed when the Keeper is.
func (h *Hold) Closed() <-chan struct{} { return h.keeper.closed }

func (h *Hold) stopWaiting() {
	if h.waiting != nil {
		h.waiting.Stop()
	}
}

// Lose is called when the lock can no longer be trusted. It does nothing if the hold is over. It must not be called by
// a goroutine that a Grant's methods wait for.
func (h *Hold) Lose() {
	if h.state.CompareAndSwap(wanted, lost) {
		return // granted takes notice
	}
	if !h.state.CompareAndSwap(held, lost) {
		return
	}
	h.scope.stop(lock.ErrLost)
	h.stopTending()
	h.leave(nil)
	h.keeper.GiveBack(h.grant.Free) // what may still be there
}

// granted makes h a lease.
func (h *Hold) granted(ctx context.Context, grant Grant, outer *lease) (lock.Lease, error) {
	h.grant = grant
	h.scope.parent = ctx
	if err := h.settle(); err != nil {
		if freed := grant.Free(); errors.Is(freed, lock.ErrUnavailable) {
			h.keeper.GiveBack(grant.Free)
		}
		h.leave(err)
		return nil, err
	}
	l := &lease{hold: h, outer: outer}
	l.ctx.lease = l
	l.cleanup = runtime.AddCleanup(l, (*Hold).forgotten, h)
	return l, nil
}

// settle makes h held, unless the Keeper was closed or the lock lost meanwhile.
func (h *Hold) settle() error {
	until := h.grant.Until()
	if !until.IsZero() {
		h.extend(until)
		h.timer = time.AfterFunc(math.MaxInt64, h.tend) // to be set when tend can see that h is held
	}
	h.keeper.mu.Lock()
	defer h.keeper.mu.Unlock()
	if h.keeper.shut {
		return lock.ErrClosed
	}
	if !h.state.CompareAndSwap(wanted, held) {
		return lock.ErrLost
	}
	h.keeper.holds[h] = struct{}{}
	if h.timer != nil && h.Settings.Lease > 0 {
		h.timer.Reset(time.Until(until))
	} else if h.timer != nil {
		h.timer.Reset(h.keeper.opts.Lease / 3)
	}
	return nil
}

func (h *Hold) extend(until time.Time) { h.deadline.Store(int64(until.Sub(h.since))) }

func (h *Hold) end() time.Time { return h.since.Add(time.Duration(h.deadline.Load())) }

func (h *Hold) is(state int32) bool { return h.state.Load() == state }

func (h *Hold) stopTending() {
	if h.timer != nil {
		h.timer.Stop()
	}
}

// overdue loses the lock if its time is over.
func (h *Hold) overdue() bool {
	if time.Since(h.since) < time.Duration(h.deadline.Load()) {
		return false
	}
	h.Lose()
	return true
}

// leave ends what h means to others: it is held no more, and its place is the next one's.
func (h *Hold) leave(why error) {
	k := h.keeper
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.holds, h)
	if k.opts.Queue {
		k.invite(h.Key, why)
	}
}

// reenter deepens the hold for a caller whose context derives from one of its leases.
func (h *Hold) reenter(ctx context.Context, outer *lease, s lock.Settings) (lock.Lease, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.note(ctx, h.depth+1, s.Timeout); err != nil {
		return nil, err
	}
	h.depth++
	inner, cancel := context.WithCancel(ctx)
	l := &lease{hold: h, ctx: leaseContext{inner: inner}, outer: outer, cancel: cancel}
	l.ctx.lease = l
	l.cleanup = runtime.AddCleanup(l, func(cancel context.CancelFunc) {
		cancel()
		h.forgotten()
	}, cancel)
	return l, nil
}

// note tells the backend the depth, and learns whether the lock is still there.
func (h *Hold) note(ctx context.Context, depth int, timeout time.Duration) error {
	if h.overdue() || !h.is(held) {
		return lock.ErrLost
	}
	err := h.grant.Note(ctx, depth, time.Now().Add(timeout))
	if errors.Is(err, lock.ErrLost) {
		h.Lose()
	}
	return err
}

// release undoes one entry; the last one frees the lock.
func (h *Hold) release() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.depth--; h.depth > 0 {
		if h.is(released) {
			return nil // by Close
		}
		return h.note(context.Background(), h.depth, h.keeper.opts.Timeout)
	}
	return h.finish(context.Canceled)
}

// finish frees the lock, whatever its depth, and cancels its context with cause.
func (h *Hold) finish(cause error) error {
	if h.overdue() || !h.state.CompareAndSwap(held, released) {
		if h.is(lost) {
			return lock.ErrLost
		}
		return nil // Close was first
	}
	h.scope.stop(cause)
	h.stopTending()
	err := h.grant.Free()
	h.leave(nil)
	if errors.Is(err, lock.ErrUnavailable) {
		h.keeper.GiveBack(h.grant.Free)
	}
	return err
}

// forgotten is called when nobody can reach a lease any more that was not released: it counts as released.
func (h *Hold) forgotten() {
	h.keeper.Spawn(func() { _ = h.release() })
}
