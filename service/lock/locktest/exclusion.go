package locktest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"seckill/service/lock"
)

// exclusion has several processes with several goroutines each count without another protection than the lock.
func (s *suite) exclusion() {
	const processes, goroutines, rounds = 3, 4, 15
	var inside, most atomic.Int32
	count := 0
	lockers := []lock.Locker{s.locker(), s.locker(), s.locker()}
	each(processes*goroutines, func(i int) {
		for range rounds {
			err := lock.Do(s.ctx(), lockers[i%processes], s.key, func(context.Context) error {
				most.Store(max(most.Load(), inside.Add(1)))
				count++
				inside.Add(-1)
				return nil
			})
			if err != nil {
				s.Errorf("Do: %v", err)
				return
			}
		}
	})
	if most.Load() != 1 || count != processes*goroutines*rounds {
		s.Errorf("%d at once, counted %d of %d", most.Load(), count, processes*goroutines*rounds)
	}
}

func (s *suite) independence() {
	l := s.locker()
	first := s.acquire(s.ctx(), l)
	other := s.key + ":other"
	second, err := l.Acquire(s.ctx(), other, lock.Try())
	if err != nil {
		s.Fatal(err)
	}
	s.release(first)
	s.release(second)
	s.nothingLeft(other)
}

func (s *suite) try() {
	ours, theirs := s.locker(), s.locker()
	lease := s.acquire(s.ctx(), ours)
	s.held(ours)
	s.held(theirs)
	s.release(lease)
	s.free(theirs)
	s.free(ours)
}

func (s *suite) wait() {
	for _, same := range []bool{true, false} {
		ours := s.locker()
		theirs := ours
		if !same {
			theirs = s.locker()
		}
		lease := s.acquire(s.ctx(), ours)
		w := s.start(s.ctx(), theirs)
		s.stillWaiting(w)
		s.release(lease)
		s.await(w)
		if w.err != nil {
			s.Fatal(w.err)
		}
		s.held(ours)
		s.release(w.lease)
	}
}

func (s *suite) waitBounded() {
	ours, theirs := s.locker(), s.locker()
	lease := s.acquire(s.ctx(), ours)
	for _, l := range []lock.Locker{ours, theirs} {
		start := time.Now()
		if _, err := l.Acquire(s.ctx(), s.key, lock.WithWait(50*time.Millisecond)); !errors.Is(err, lock.ErrHeld) {
			s.Errorf("error %v, want ErrHeld", err)
		}
		if d := time.Since(start); d < 50*time.Millisecond {
			s.Errorf("gave up after %v", d)
		}
	}
	s.release(lease)
	granted := s.acquire(s.ctx(), theirs, lock.WithWait(20*time.Millisecond))
	select {
	case <-granted.Context().Done():
		s.Error("the bound of the wait reached into the lease")
	case <-time.After(50 * time.Millisecond):
	}
	s.release(granted)
}

func (s *suite) waitCancelled() {
	ours, theirs := s.locker(), s.locker()
	lease := s.acquire(s.ctx(), ours)
	var waiters []*waiter
	ctx, cancel := context.WithCancel(s.ctx())
	for _, l := range []lock.Locker{ours, ours, theirs, theirs} {
		waiters = append(waiters, s.start(ctx, l))
	}
	s.stillWaiting(waiters[0])
	patient := s.start(s.ctx(), theirs)
	cancel()
	for _, w := range waiters {
		if s.await(w); !errors.Is(w.err, context.Canceled) {
			s.Errorf("error %v, want Canceled", w.err)
		}
	}
	s.stillWaiting(patient)
	s.release(lease)
	if s.await(patient); patient.err != nil {
		s.Fatal(patient.err)
	}
	s.release(patient.lease)
}

// acquireCancelled cancels at all kinds of moments: whatever the outcome, nothing may be left (see Run's Cleanup).
func (s *suite) acquireCancelled() {
	l := s.locker()
	for i := range 60 {
		ctx, cancel := context.WithCancel(s.ctx())
		timer := time.AfterFunc(time.Duration(i)*15*time.Microsecond, cancel)
		lease, err := l.Acquire(ctx, s.key)
		switch {
		case err == nil:
			s.release(lease)
		case !errors.Is(err, context.Canceled):
			s.Fatalf("error %v, want Canceled", err)
		}
		timer.Stop()
		cancel()
	}
	s.release(s.acquire(s.ctx(), l))
}

func (s *suite) fairToWaiters() {
	if !s.b.FairToWaiters {
		s.Skip("the backend does not promise it")
	}
	s.fair(func() lock.Locker { return nil })
}

func (s *suite) fairToEveryone() {
	if !s.b.FairToEveryone {
		s.Skip("the backend does not promise it")
	}
	s.fair(s.locker)
}

// fair lets waiters queue one after the other, each with the Locker that next returns, or all with one if that is nil.
func (s *suite) fair(next func() lock.Locker) {
	shared := s.locker()
	lease := s.acquire(s.ctx(), shared)
	var mu sync.Mutex
	var order []int
	var all sync.WaitGroup
	const waiters = 8
	for i := range waiters {
		before := len(s.b.Left(s.T, s.key))
		l := next()
		if l == nil {
			l = shared
		}
		all.Go(func() {
			err := lock.Do(s.ctx(), l, s.key, func(context.Context) error {
				mu.Lock()
				defer mu.Unlock()
				order = append(order, i)
				return nil
			})
			if err != nil {
				s.Errorf("waiter %d: %v", i, err)
			}
		})
		if s.b.FairToEveryone { // the waiters queue at the backend
			s.eventually("the waiter has queued", func() bool { return len(s.b.Left(s.T, s.key)) > before })
		} else { // nobody outside of the Locker sees that a waiter has queued
			time.Sleep(30 * time.Millisecond)
		}
	}
	s.release(lease)
	all.Wait()
	for i, got := range order {
		if i != got {
			s.Fatalf("order %v", order)
		}
	}
}

func (s *suite) close() {
	ours, theirs := s.locker(), s.locker()
	lease := s.acquire(s.ctx(), ours)
	w := s.start(s.ctx(), theirs)
	s.stillWaiting(w)
	start := time.Now()
	if err := ours.Close(); err != nil {
		s.Fatal(err)
	}
	s.awaitDone(lease.Context().Done(), "the lease outlives Close")
	if cause := context.Cause(lease.Context()); !errors.Is(cause, lock.ErrClosed) {
		s.Errorf("the context ended with %v, want ErrClosed", cause)
	}
	if err := lease.Release(s.ctx()); err != nil {
		s.Errorf("Release after Close: %v", err)
	}
	if s.await(w); w.err != nil {
		s.Fatal(w.err)
	}
	if d := time.Since(start); d >= s.b.Lease*2/3 {
		s.Errorf("the lock was free after %v, as if Close had not released it", d)
	}
	s.release(w.lease)
	if _, err := ours.Acquire(s.ctx(), s.key); !errors.Is(err, lock.ErrClosed) {
		s.Errorf("Acquire after Close: %v, want ErrClosed", err)
	}
	if err := ours.Close(); err != nil {
		s.Errorf("second Close: %v", err)
	}
}

func (s *suite) closeWithQueue() {
	ours, theirs := s.locker(), s.locker()
	lease := s.acquire(s.ctx(), theirs)
	var waiters []*waiter
	for range 5 {
		waiters = append(waiters, s.start(s.ctx(), ours))
	}
	s.stillWaiting(waiters[0])
	if err := ours.Close(); err != nil {
		s.Fatal(err)
	}
	for _, w := range waiters {
		if s.await(w); !errors.Is(w.err, lock.ErrClosed) {
			s.Errorf("waiter: %v, want ErrClosed", w.err)
		}
	}
	s.held(s.locker())
	s.release(lease)
}
