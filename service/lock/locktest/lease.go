package locktest

import (
	"context"
	"errors"
	"time"

	"seckill/service/lock"
)

func (s *suite) reentry() {
	ours, theirs := s.locker(), s.locker()
	outer := s.acquire(s.ctx(), ours)
	derived, cancel := context.WithCancel(outer.Context())
	defer cancel()
	middle := s.acquire(derived, ours)
	inner := s.acquire(middle.Context(), ours, lock.Try())
	s.sameToken(outer, inner)
	s.release(inner)
	s.release(inner) // no further effect
	s.held(theirs)
	s.release(middle)
	s.held(theirs)
	s.held(ours)
	if err := outer.Context().Err(); err != nil {
		s.Errorf("the outer lease ended with the inner ones: %v", err)
	}
	s.release(outer)
	s.free(theirs)
}

// reentryOutOfOrder releases the outer lease first: the hold stands until all are released.
func (s *suite) reentryOutOfOrder() {
	ours, theirs := s.locker(), s.locker()
	outer := s.acquire(s.ctx(), ours)
	inner := s.acquire(outer.Context(), ours)
	s.release(outer)
	s.held(theirs)
	s.release(inner)
	s.free(theirs)
}

func (s *suite) reentryNeedsContext() {
	ours := s.locker()
	lease := s.acquire(s.ctx(), ours)
	s.held(ours)
	s.release(lease)
	if _, err := ours.Acquire(lease.Context(), s.key); !errors.Is(err, context.Canceled) {
		s.Errorf("Acquire under a released lease: %v, want Canceled", err)
	}
}

// reentryThroughOthers acquires another key, and another Locker's lock, between the two entries.
func (s *suite) reentryThroughOthers() {
	ours, theirs := s.locker(), s.locker()
	outer := s.acquire(s.ctx(), ours)
	other, err := ours.Acquire(outer.Context(), s.key+":other")
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { s.nothingLeft(s.key + ":other") })
	if lease, err := theirs.Acquire(other.Context(), s.key, lock.Try()); !errors.Is(err, lock.ErrHeld) {
		s.Errorf("another Locker re-entered: %v, %v", lease, err)
	}
	inner := s.acquire(other.Context(), ours, lock.Try())
	s.release(inner)
	s.release(other)
	s.held(theirs)
	s.release(outer)
	s.free(theirs)
}

func (s *suite) context() {
	type name struct{}
	l := s.locker()
	ctx, cancel := context.WithCancel(context.WithValue(s.ctx(), name{}, "value"))
	lease := s.acquire(ctx, l)
	if got := lease.Context().Value(name{}); got != "value" {
		s.Errorf("value %v", got)
	}
	if err := lease.Context().Err(); err != nil {
		s.Error(err)
	}
	cancel()
	s.awaitDone(lease.Context().Done(), "the lease outlives the context")
	if err := lease.Context().Err(); !errors.Is(err, context.Canceled) {
		s.Errorf("error %v", err)
	}
	s.release(lease)
}

func (s *suite) releaseAfterCancel() {
	ours, theirs := s.locker(), s.locker()
	ctx, cancel := context.WithCancel(s.ctx())
	lease := s.acquire(ctx, ours)
	cancel()
	if err := lease.Release(ctx); err != nil {
		s.Fatalf("Release with a cancelled context: %v", err)
	}
	s.free(theirs)
}

func (s *suite) releaseTwice() {
	ours, theirs := s.locker(), s.locker()
	first := s.acquire(s.ctx(), ours)
	s.release(first)
	select {
	case <-first.Context().Done():
	default:
		s.Error("Release did not end the lease's context")
	}
	for _, l := range []lock.Locker{ours, theirs} {
		second := s.acquire(s.ctx(), l)
		s.release(first)
		s.held(s.locker())
		s.release(second)
	}
}

// explicitLease: A's lease ends, B acquires, A releases, and B's lock stands.
func (s *suite) explicitLease() {
	if !s.b.HonoursWithLease {
		s.Skip("the backend has no explicit leases")
	}
	ours, theirs := s.locker(), s.locker()
	d := s.b.Lease / 2
	start := time.Now()
	lease := s.acquire(s.ctx(), ours, lock.WithLease(d))
	w := s.start(s.ctx(), theirs)
	s.lost(lease)
	if took := time.Since(start); took > d+s.b.Lease {
		s.Errorf("told after %v that a lease of %v has ended", took, d)
	}
	if s.await(w); w.err != nil {
		s.Fatal(w.err)
	}
	if err := lease.Release(s.ctx()); !errors.Is(err, lock.ErrLost) {
		s.Errorf("Release after the loss: %v, want ErrLost", err)
	}
	if err := lease.Release(s.ctx()); !errors.Is(err, lock.ErrLost) {
		s.Errorf("second Release after the loss: %v, want ErrLost", err)
	}
	if _, err := ours.Acquire(lease.Context(), s.key); !errors.Is(err, lock.ErrLost) {
		s.Errorf("re-entry after the loss: %v, want ErrLost", err)
	}
	s.held(ours)
	s.release(w.lease)
}

// leaseReused uses one Locker with an explicit lease and then with a renewed one: the second must outlive the first's.
func (s *suite) leaseReused() {
	if !s.b.HonoursWithLease {
		s.Skip("the backend has no explicit leases")
	}
	ours, theirs := s.locker(), s.locker()
	s.release(s.acquire(s.ctx(), ours, lock.WithLease(s.b.Lease/4)))
	lease := s.acquire(s.ctx(), ours)
	time.Sleep(s.b.Lease / 2)
	s.held(theirs)
	s.release(lease)
}

func (s *suite) renewal() {
	ours, theirs := s.locker(), s.locker()
	lease := s.acquire(s.ctx(), ours)
	for end := time.Now().Add(s.b.Lease * 5 / 2); time.Now().Before(end); time.Sleep(s.b.Lease / 10) {
		s.held(theirs)
	}
	if err := lease.Context().Err(); err != nil {
		s.Fatal(context.Cause(lease.Context()))
	}
	s.release(lease)
}

// renewalEndsWithContext: a holder whose context ended, and who does not release, does not keep its lock.
func (s *suite) renewalEndsWithContext() {
	ours, theirs := s.locker(), s.locker()
	ctx, cancel := context.WithCancel(s.ctx())
	lease := s.acquire(ctx, ours)
	time.Sleep(s.b.Lease / 2) // renewed once
	cancel()
	each(2, func(i int) { // another process, and the holder's own
		l := []lock.Locker{ours, theirs}[i]
		if err := lock.Do(s.ctx(), l, s.key, func(context.Context) error { return nil }); err != nil {
			s.Errorf("the lock stayed held: %v", err)
		}
	})
	if err := lease.Release(s.ctx()); !errors.Is(err, lock.ErrLost) {
		s.Errorf("Release after that: %v, want ErrLost", err)
	}
}

// wiped: the lock disappears under its holder, which must not take it back by renewing.
func (s *suite) wiped() {
	ours, theirs := s.locker(), s.locker()
	lease := s.acquire(s.ctx(), ours)
	s.b.Wipe(s.T, s.key)
	other := s.acquire(s.ctx(), theirs)
	s.lost(lease)
	if err := lease.Release(s.ctx()); !errors.Is(err, lock.ErrLost) {
		s.Errorf("Release: %v, want ErrLost", err)
	}
	s.held(ours)
	s.release(other)

	again := s.acquire(s.ctx(), ours)
	s.b.Wipe(s.T, s.key)
	if err := again.Release(s.ctx()); !errors.Is(err, lock.ErrLost) {
		s.Errorf("Release before the loss was told: %v, want ErrLost", err)
	}
	select {
	case <-again.Context().Done():
	default:
		s.Error("Release did not end the lease's context")
	}
}

func (s *suite) sameToken(a, b lock.Lease) {
	s.Helper()
	ta, oka := a.Token()
	tb, okb := b.Token()
	if ta != tb || oka != okb || oka != s.b.Tokens {
		s.Errorf("tokens %d, %t and %d, %t", ta, oka, tb, okb)
	}
}

// tokens rise over grants, processes, crashes and deleted locks.
func (s *suite) tokens() {
	ours, theirs := s.locker(), s.locker()
	last := uint64(0)
	higher := func(lease lock.Lease) {
		s.Helper()
		token, ok := lease.Token()
		if ok != s.b.Tokens {
			s.Fatalf("token %t, want %t", ok, s.b.Tokens)
		}
		if ok && token <= last {
			s.Fatalf("token %d after %d", token, last)
		}
		last = token
	}
	for range 20 {
		for _, l := range []lock.Locker{ours, theirs} {
			lease := s.acquire(s.ctx(), l)
			higher(lease)
			s.release(lease)
		}
	}
	lease := s.acquire(s.ctx(), ours)
	higher(lease)
	s.b.Wipe(s.T, s.key)
	next := s.acquire(s.ctx(), theirs)
	higher(next)
	s.release(next)
	s.lost(lease)

	ctx, crash := context.WithCancel(s.ctx())
	higher(s.acquire(ctx, ours))
	crash()
	next = s.acquire(s.ctx(), theirs)
	higher(next)
	s.release(next)
}
