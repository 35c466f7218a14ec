// Package locktest is the test suite for all implementations of lock.Locker.
//
// A package that runs it should check with goleak in TestMain that no goroutine is left.
package locktest

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"testing"
	"time"

	"seckill/service/lock"
)

// Backend describes an implementation to the suite.
type Backend struct {
	// New returns a Locker that shares only the backend with those returned before, as if it were another process. The
	// suite closes it; New closes everything else in t.Cleanup.
	New func(t *testing.T) lock.Locker
	// Lease is the lease of these Lockers. Keep it short.
	Lease time.Duration
	// Left lists what the backend stores for the lock. It is empty if the lock is free.
	Left func(t *testing.T, key string) []string
	// Wipe removes the lock at the backend while it is held.
	Wipe func(t *testing.T, key string)

	Tokens           bool // leases have fencing tokens
	HonoursWithLease bool // the backend honours lock.WithLease
	FairToWaiters    bool // waiters of one process get in first come, first served
	FairToEveryone   bool // waiters of all processes do
}

// Run runs the suite.
func Run(t *testing.T, b Backend) {
	for name, test := range map[string]func(*suite){
		"exclusion":                 (*suite).exclusion,
		"keys are independent":      (*suite).independence,
		"re-entry":                  (*suite).reentry,
		"re-entry released inside":  (*suite).reentryOutOfOrder,
		"no re-entry by goroutine":  (*suite).reentryNeedsContext,
		"re-entry through others":   (*suite).reentryThroughOthers,
		"try":                       (*suite).try,
		"wait":                      (*suite).wait,
		"wait bounded":              (*suite).waitBounded,
		"wait cancelled":            (*suite).waitCancelled,
		"acquire cancelled":         (*suite).acquireCancelled,
		"fair to waiters":           (*suite).fairToWaiters,
		"fair to everyone":          (*suite).fairToEveryone,
		"context":                   (*suite).context,
		"release after cancel":      (*suite).releaseAfterCancel,
		"release twice":             (*suite).releaseTwice,
		"explicit lease":            (*suite).explicitLease,
		"lease reused":              (*suite).leaseReused,
		"renewal":                   (*suite).renewal,
		"renewal ends with context": (*suite).renewalEndsWithContext,
		"wiped":                     (*suite).wiped,
		"tokens":                    (*suite).tokens,
		"close":                     (*suite).close,
		"close with queue":          (*suite).closeWithQueue,
	} {
		t.Run(name, func(t *testing.T) {
			s := &suite{T: t, b: b, key: "locktest:" + rand.Text()}
			t.Cleanup(func() { s.nothingLeft(s.key) })
			test(s)
		})
	}
}

// suite is one test of it.
type suite struct {
	*testing.T
	b   Backend
	key string
}

// timeout bounds waits on a busy machine.
const timeout = 20 * time.Second

func (s *suite) locker() lock.Locker {
	s.Helper()
	l := s.b.New(s.T)
	s.Cleanup(func() {
		if err := l.Close(); err != nil {
			s.Errorf("Close: %v", err)
		}
	})
	return l
}

// ctx bounds a call that hangs.
func (s *suite) ctx() context.Context {
	ctx, cancel := context.WithTimeout(s.T.Context(), timeout)
	s.Cleanup(cancel)
	return ctx
}

func (s *suite) acquire(ctx context.Context, l lock.Locker, opts ...lock.Option) lock.Lease {
	s.Helper()
	lease, err := l.Acquire(ctx, s.key, opts...)
	if err != nil {
		s.Fatalf("Acquire: %v", err)
	}
	return lease
}

func (s *suite) release(lease lock.Lease) {
	s.Helper()
	if err := lease.Release(context.Background()); err != nil {
		s.Fatalf("Release: %v", err)
	}
}

// held checks that l finds the lock held by another.
func (s *suite) held(l lock.Locker) {
	s.Helper()
	lease, err := l.Acquire(s.ctx(), s.key, lock.Try())
	if err == nil {
		lease.Release(s.ctx())
	}
	if !errors.Is(err, lock.ErrHeld) {
		s.Fatalf("Acquire(Try) of a held lock: %v, want ErrHeld", err)
	}
}

// free checks that l finds the lock free.
func (s *suite) free(l lock.Locker) {
	s.Helper()
	s.release(s.acquire(s.ctx(), l, lock.Try()))
}

// waiter acquires in the background.
type waiter struct {
	lease lock.Lease
	err   error
	done  chan struct{}
}

func (s *suite) start(ctx context.Context, l lock.Locker, opts ...lock.Option) *waiter {
	w := &waiter{done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.lease, w.err = l.Acquire(ctx, s.key, opts...)
	}()
	return w
}

func (s *suite) await(w *waiter) {
	s.Helper()
	s.awaitDone(w.done, "the waiter did not return")
}

func (s *suite) awaitDone(done <-chan struct{}, otherwise string) {
	s.Helper()
	select {
	case <-done:
	case <-time.After(timeout):
		s.Fatal(otherwise)
	}
}

// stillWaiting checks that w has not returned after a moment.
func (s *suite) stillWaiting(w *waiter) {
	s.Helper()
	select {
	case <-w.done:
		s.Fatalf("the waiter returned: %v", w.err)
	case <-time.After(30 * time.Millisecond):
	}
}

// eventually waits until holds returns true.
func (s *suite) eventually(what string, holds func() bool) {
	s.Helper()
	for end := time.Now().Add(timeout); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			s.Fatalf("not within %v: %s", timeout, what)
		}
	}
}

// nothingLeft checks that the backend stores nothing for the lock any more. Releases in the background may take a while.
func (s *suite) nothingLeft(key string) {
	s.Helper()
	var left []string
	for end := time.Now().Add(timeout); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if left = s.b.Left(s.T, key); len(left) == 0 {
			return
		}
	}
	s.Errorf("left behind: %v", left)
}

// lost checks that the lease's context ends with ErrLost.
func (s *suite) lost(lease lock.Lease) {
	s.Helper()
	s.awaitDone(lease.Context().Done(), "the loss was not reported")
	if cause := context.Cause(lease.Context()); !errors.Is(cause, lock.ErrLost) {
		s.Fatalf("the context ended with %v, want ErrLost", cause)
	}
}

// each runs f for n goroutines and waits for them.
func each(n int, f func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { f(i) })
	}
	all.Wait()
}
