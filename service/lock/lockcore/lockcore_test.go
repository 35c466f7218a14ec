package lockcore_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
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
	down  bool // answers acquisitions with ErrUnavailable after downTimeout, everything else at once

	renewals int
}

func (s *store) setDown(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
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
		s.mu.Unlock() // others ask meanwhile
		time.Sleep(downTimeout)
		s.mu.Lock()
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
	return until, g.change(func() {
		g.store.locks[g.key] = entry{g, until}
		g.store.renewals++
	})
}

func (g *grant) SetDepth(context.Context, int, time.Time) error { return g.change(func() {}) }

const downTimeout = 100 * time.Millisecond

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
		Tokens: true, HonoursWithLease: true, FairToWaiters: true,
	})
}

// When the backend goes away, the callers in the queue do not ask it one after the other.
func TestCore_UnavailableReachesAllWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		c := newCore(s)
		defer c.Close()
		lease := acquire(t, c)
		const waiters = 50
		errs := make(chan error)
		for range waiters {
			go func() {
				_, err := c.Acquire(t.Context(), "key")
				errs <- err
			}()
		}
		synctest.Wait() // all are in the queue
		s.setDown(true)
		if err := lease.Release(t.Context()); !errors.Is(err, lock.ErrUnavailable) {
			t.Errorf("Release: %v, want ErrUnavailable", err)
		}
		start := time.Now()
		for range waiters {
			if err := <-errs; !errors.Is(err, lock.ErrUnavailable) {
				t.Errorf("waiter: %v, want ErrUnavailable", err)
			}
		}
		if d := time.Since(start); d != downTimeout {
			t.Errorf("the waiters waited %v, want one timeout of %v for all", d, downTimeout)
		}
		s.setDown(false)
		time.Sleep(testLease) // the release is repeated by then
		lease, err := c.Acquire(t.Context(), "key", lock.Try())
		if err != nil {
			t.Fatal(err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// Without an answer to renewals, the lock is lost when the lease ends by the holder's own clock.
func TestCore_UnansweredRenewalLosesTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		c := newCore(s)
		defer c.Close()
		lease, start := acquire(t, c), time.Now()
		s.setDown(true)
		<-lease.Context().Done()
		if cause := context.Cause(lease.Context()); !errors.Is(cause, lock.ErrLost) {
			t.Errorf("ended with %v", cause)
		}
		if d := time.Since(start); d != testLease {
			t.Errorf("ended after %v, the lease is %v", d, testLease)
		}
	})
}

// A lock is renewed at each third of its lease, and no longer after its release.
func TestCore_RenewsAtAThirdOfTheLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		c := newCore(s)
		defer c.Close()
		lease := acquire(t, c)
		time.Sleep(10*testLease + time.Millisecond)
		if err := lease.Context().Err(); err != nil || s.renewals != 30 {
			t.Errorf("%d renewals in ten leases, want 30; %v", s.renewals, err)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(testLease)
		if s.renewals != 30 {
			t.Errorf("%d renewals after the release", s.renewals-30)
		}
	})
}

func acquire(t *testing.T, c *lockcore.Core) lock.Lease {
	t.Helper()
	lease, err := c.Acquire(t.Context(), "key")
	if err != nil {
		t.Fatal(err)
	}
	return lease
}
