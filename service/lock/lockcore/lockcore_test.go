package lockcore_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"seckill/service/lock"
	"seckill/service/lock/lockcore"
	"seckill/service/lock/locktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// store is a backend in memory, which several Cores share as processes share a server.
type store struct {
	mu    sync.Mutex
	locks map[string]entry
	token uint64
	down  bool // answers ErrUnavailable
}

type entry struct {
	owner *grant
	until time.Time
}

type grant struct {
	store *store
	key   string
	lease time.Duration
	token uint64
}

func (s *store) Acquire(ctx context.Context, h *lockcore.Hold) (lockcore.Grant, error) {
	g := &grant{store: s, key: h.Key, lease: testLease}
	if h.Settings.Lease > 0 {
		g.lease = h.Settings.Lease
	}
	for {
		if err := s.try(g); !errors.Is(err, lock.ErrHeld) || h.Settings.Try {
			return g, err
		}
		if err := lockcore.Wait[any](ctx, h, nil, time.Millisecond); err != nil {
			return nil, err
		}
	}
}

func (s *store) try(g *grant) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return lock.ErrUnavailable
	}
	if e, ok := s.locks[g.key]; ok && time.Now().Before(e.until) {
		return lock.ErrHeld
	}
	s.token++
	g.token = s.token
	s.locks[g.key] = entry{g, time.Now().Add(g.lease)}
	return nil
}

// change does f if the lock is g's.
func (g *grant) change(f func()) error {
	g.store.mu.Lock()
	defer g.store.mu.Unlock()
	if g.store.down {
		return lock.ErrUnavailable
	}
	if g.store.locks[g.key].owner != g {
		return lock.ErrLost
	}
	f()
	return nil
}

func (g *grant) Token() (uint64, bool) { return g.token, true }
func (g *grant) ValidUntil() time.Time { return time.Now().Add(g.lease) }
func (g *grant) Release() error        { return g.change(func() { delete(g.store.locks, g.key) }) }

func (g *grant) Renew(context.Context, time.Time) (time.Time, error) {
	until := time.Now().Add(g.lease)
	return until, g.change(func() { g.store.locks[g.key] = entry{g, until} })
}

func (g *grant) SetDepth(context.Context, int, time.Time) error { return g.change(func() {}) }

const testLease = 300 * time.Millisecond

func newCore(s *store) *lockcore.Core {
	return lockcore.New(s, lockcore.Options{Lease: testLease, Timeout: time.Second, Queue: true})
}

func newStore() *store { return &store{locks: map[string]entry{}} }

func TestCore_Suite(t *testing.T) {
	s := newStore()
	locktest.Run(t, locktest.Backend{
		New:   func(*testing.T) lock.Locker { return newCore(s) },
		Lease: testLease,
		Left: func(_ *testing.T, key string) []string {
			s.mu.Lock()
			defer s.mu.Unlock()
			if e, ok := s.locks[key]; ok && time.Now().Before(e.until) {
				return []string{key}
			}
			return nil
		},
		Wipe: func(_ *testing.T, key string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.locks, key)
		},
		Tokens: true, Explicit: true, FairToWaiters: true,
	})
}

// TestCore_UnavailableReachesAllWaiters: when the backend goes away, those in the queue don't ask one after the other.
func TestCore_UnavailableReachesAllWaiters(t *testing.T) {
	s := newStore()
	k := newCore(s)
	defer k.Close()
	lease, err := k.Acquire(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	errs := make(chan error)
	for range 50 {
		go func() {
			_, err := k.Acquire(t.Context(), "key")
			errs <- err
		}()
	}
	time.Sleep(20 * time.Millisecond)
	s.mu.Lock()
	s.down = true
	s.mu.Unlock()
	if err := lease.Release(t.Context()); !errors.Is(err, lock.ErrUnavailable) {
		t.Errorf("Release: %v, want ErrUnavailable", err)
	}
	for range 50 {
		if err := <-errs; !errors.Is(err, lock.ErrUnavailable) {
			t.Errorf("waiter: %v, want ErrUnavailable", err)
		}
	}
	s.mu.Lock()
	s.down = false
	s.mu.Unlock()
	for { // the release is repeated
		if lease, err := k.Acquire(t.Context(), "key", lock.Try()); err == nil {
			lease.Release(t.Context())
			break
		}
		time.Sleep(time.Millisecond)
	}
}

// TestCore_UnansweredRenewalLosesTheLock: the lock is lost when the lease is over, by the holder's own clock.
func TestCore_UnansweredRenewalLosesTheLock(t *testing.T) {
	s := newStore()
	k := newCore(s)
	defer k.Close()
	lease, err := k.Acquire(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	s.mu.Lock()
	s.down = true
	s.mu.Unlock()
	<-lease.Context().Done()
	if cause := context.Cause(lease.Context()); !errors.Is(cause, lock.ErrLost) {
		t.Errorf("ended with %v", cause)
	}
	if d := time.Since(start); d < testLease*9/10 || d > testLease*3/2 {
		t.Errorf("ended after %v, the lease being %v", d, testLease)
	}
}
