package idgentest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"seckill/service/idgen"
)

// LeaseBackend is what RunLeases needs to know of a lease store.
type LeaseBackend struct {
	// Open returns a store as a process of its own would have it; all of one backend share their data.
	Open func(t *testing.T) idgen.LeaseStore
	// TTL is how long leases are asked for where the check waits for their end.
	TTL time.Duration
	// Long is how long they are asked for otherwise, so that a slow machine does not end them; TTL if it is zero.
	Long time.Duration
	// Abandon makes the process behind a store vanish, without its giving anything back. It may be nil where a lease is
	// abandoned by not being renewed.
	Abandon func(idgen.LeaseStore)
}

// RunLeases checks the contract of idgen.LeaseStore. It calls newBackend once a subtest, for an empty backend.
func RunLeases(t *testing.T, newBackend func(t *testing.T) LeaseBackend) {
	for name, check := range map[string]func(*testing.T, LeaseBackend){
		"each pair once":          eachPairOnce,
		"starting together":       startingTogether,
		"own pair again":          ownPairAgain,
		"ceilings":                ceilings,
		"lowest ceilings first":   lowestFirst,
		"expired lease is taken":  expiredIsTaken,
		"expired lease is kept":   expiredIsKept,
		"renewed lease is not":    renewedIsNotTaken,
		"one layout":              oneLayout,
		"store cannot be reached": unreachable,
	} {
		t.Run(name, func(t *testing.T) { check(t, newBackend(t)) })
	}
}

const suiteLayout = "suite"

func (b LeaseBackend) want(owner string, first, count int) idgen.LeaseRequest {
	return idgen.LeaseRequest{Owner: owner, Layout: suiteLayout, First: first, Count: count, TTL: b.long()}
}

func (b LeaseBackend) long() time.Duration {
	if b.Long > 0 {
		return b.Long
	}
	return b.TTL
}

// brief asks for the first pair alone, and not for long.
func (b LeaseBackend) brief(owner string) idgen.LeaseRequest {
	want := b.want(owner, 0, 1)
	want.TTL = b.TTL
	return want
}

func mustAcquire(t *testing.T, s idgen.LeaseStore, want idgen.LeaseRequest) idgen.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), want)
	if err != nil {
		t.Fatalf("Acquire(%+v): %v", want, err)
	}
	if g.Owner != want.Owner || g.Pair < want.First || g.Pair >= want.First+want.Count {
		t.Fatalf("Acquire(%+v) = %+v", want, g)
	}
	return g
}

func eachPairOnce(t *testing.T, b LeaseBackend) {
	s := b.Open(t)
	seen := map[int]bool{}
	for i := range 4 {
		g := mustAcquire(t, s, b.want(fmt.Sprint("owner", i), 8, 4))
		if seen[g.Pair] {
			t.Fatalf("pair %d twice", g.Pair)
		}
		seen[g.Pair] = true
	}
	if g, err := s.Acquire(t.Context(), b.want("late", 8, 4)); !errors.Is(err, idgen.ErrNoWorker) {
		t.Fatalf("Acquire = %+v, %v with all taken, want ErrNoWorker", g, err)
	}
	mustAcquire(t, s, b.want("elsewhere", 12, 4))
}

func startingTogether(t *testing.T, b LeaseBackend) {
	const n = 16
	var (
		mu   sync.Mutex
		wg   sync.WaitGroup
		seen = map[int]string{}
	)
	for i := range n {
		s := b.Open(t)
		wg.Go(func() {
			owner := fmt.Sprint("owner", i)
			g, err := s.Acquire(t.Context(), b.want(owner, 0, n))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			} else if other, again := seen[g.Pair]; again {
				t.Errorf("pair %d is leased to %s and %s", g.Pair, other, owner)
			}
			seen[g.Pair] = owner
		})
	}
	wg.Wait()
}

// ownPairAgain: an answer that was lost is asked for again, and must not cost a second pair.
func ownPairAgain(t *testing.T, b LeaseBackend) {
	s := b.Open(t)
	first := mustAcquire(t, s, b.want("me", 0, 8))
	again := mustAcquire(t, s, b.want("me", 0, 8))
	if again.Pair != first.Pair || again.Fence < first.Fence {
		t.Errorf("%+v became %+v", first, again)
	}
	if err := s.Renew(t.Context(), again, b.long(), idgen.Ceilings{1, 1}); err != nil {
		t.Error(err)
	}
}

func ceilings(t *testing.T, b LeaseBackend) {
	s := b.Open(t)
	g := mustAcquire(t, s, b.want("me", 0, 1))
	if g.Ceilings != (idgen.Ceilings{}) {
		t.Errorf("ceilings %v of a pair that was never used", g.Ceilings)
	}
	renew := func(c idgen.Ceilings) {
		t.Helper()
		for range 2 { // an answer may be lost
			if err := s.Renew(t.Context(), g, b.long(), c); err != nil {
				t.Fatal(err)
			}
		}
	}
	renew(idgen.Ceilings{100, 20})
	renew(idgen.Ceilings{50, 30}) // overtaken on its way by the one before
	for range 2 {
		if err := s.Release(t.Context(), g, idgen.Ceilings{70, 30}); err != nil {
			t.Fatal(err)
		}
	}
	next := mustAcquire(t, s, b.want("other", 0, 1))
	if next.Ceilings != (idgen.Ceilings{70, 30}) || next.Fence <= g.Fence {
		t.Errorf("%+v follows %+v, want ceilings as released", next, g)
	}
	if err := s.Renew(t.Context(), next, b.long(), idgen.Ceilings{200, 30}); err != nil {
		t.Fatal(err)
	}
	// The one who is gone comes back: nothing of what it says counts.
	if err := s.Renew(t.Context(), g, b.long(), idgen.Ceilings{999, 999}); !errors.Is(err, idgen.ErrLeaseLost) {
		t.Errorf("Renew of a lease given back = %v, want ErrLeaseLost", err)
	}
	if err := s.Release(t.Context(), g, idgen.Ceilings{1, 1}); err != nil {
		t.Errorf("Release of a lease given back = %v, want nothing to happen", err)
	}
	again := mustAcquire(t, s, b.want("other", 0, 1))
	if again.Ceilings != (idgen.Ceilings{200, 30}) {
		t.Errorf("ceilings %v, want them untouched by the former holder", again.Ceilings)
	}
}

func lowestFirst(t *testing.T, b LeaseBackend) {
	s := b.Open(t)
	for i, c := range []idgen.Ceilings{{300, 300}, {100, 400}, {200, 200}} {
		g := mustAcquire(t, s, b.want(fmt.Sprint("owner", i), i, 1))
		if err := s.Renew(t.Context(), g, b.long(), c); err != nil {
			t.Fatal(err)
		}
		if err := s.Release(t.Context(), g, c); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []int{1, 2, 0} {
		if g := mustAcquire(t, s, b.want(fmt.Sprint("new", i), 0, 3)); g.Pair != want {
			t.Errorf("pair %d, want %d: the lowest ceiling of those left", g.Pair, want)
		}
	}
}

// eventually asks for the only pair until it is there.
func (b LeaseBackend) eventually(t *testing.T, s idgen.LeaseStore, owner string) idgen.Grant {
	t.Helper()
	start := time.Now()
	for time.Since(start) < 4*b.TTL+10*time.Second {
		g, err := s.Acquire(t.Context(), b.brief(owner))
		if err == nil {
			return g
		}
		if !errors.Is(err, idgen.ErrNoWorker) {
			t.Fatal(err)
		}
		time.Sleep(b.TTL / 20)
	}
	t.Fatal("the lease does not expire")
	return idgen.Grant{}
}

func expiredIsTaken(t *testing.T, b LeaseBackend) {
	old, heir := b.Open(t), b.Open(t)
	g := mustAcquire(t, old, b.brief("old"))
	sent := time.Now()
	if err := old.Renew(t.Context(), g, b.TTL, idgen.Ceilings{500, 60}); err != nil {
		t.Fatal(err)
	}
	if b.Abandon != nil {
		b.Abandon(old)
	}
	next := b.eventually(t, heir, "heir")
	if took := time.Since(sent); took < b.TTL-2*time.Millisecond { // stores count in milliseconds
		t.Errorf("taken %s after the lease was renewed for %s", took, b.TTL)
	}
	if next.Ceilings != (idgen.Ceilings{500, 60}) || next.Fence <= g.Fence {
		t.Errorf("%+v follows %+v, want its ceilings inherited", next, g)
	}
	if b.Abandon == nil {
		if err := old.Renew(t.Context(), g, b.TTL, idgen.Ceilings{900, 900}); !errors.Is(err, idgen.ErrLeaseLost) {
			t.Errorf("Renew after the lease was taken = %v, want ErrLeaseLost", err)
		}
	}
}

func expiredIsKept(t *testing.T, b LeaseBackend) {
	s := b.Open(t)
	g := mustAcquire(t, s, b.brief("me"))
	time.Sleep(b.TTL + b.TTL/4)
	if err := s.Renew(t.Context(), g, b.TTL, idgen.Ceilings{10, 10}); err != nil {
		t.Errorf("Renew of an expired lease that nobody took: %v", err)
	}
	if got, err := b.Open(t).Acquire(t.Context(), b.brief("other")); !errors.Is(err, idgen.ErrNoWorker) {
		t.Errorf("Acquire = %+v, %v, want ErrNoWorker: it was renewed", got, err)
	}
}

// renewedIsNotTaken tries again when the machine is too slow to renew the lease in time, which proves nothing.
func renewedIsNotTaken(t *testing.T, b LeaseBackend) {
	for try := range 5 {
		s, rival := b.Open(t), b.Open(t)
		g := b.eventually(t, s, fmt.Sprint("me", try))
		if b.holdsOn(t, s, rival, g) {
			return
		}
	}
	t.Error("the machine is too slow to renew the lease in time")
}

// holdsOn renews g for two TTLs while a rival asks for it; false if a renewal came too late.
func (b LeaseBackend) holdsOn(t *testing.T, s, rival idgen.LeaseStore, g idgen.Grant) bool {
	t.Helper()
	renewed := time.Now()
	for range 8 {
		time.Sleep(b.TTL / 4)
		got, err := rival.Acquire(t.Context(), b.brief("rival"))
		if err == nil && time.Since(renewed) >= b.TTL {
			return false
		}
		if !errors.Is(err, idgen.ErrNoWorker) {
			t.Fatalf("Acquire = %+v, %v, want ErrNoWorker", got, err)
		}
		sent := time.Now()
		if err := s.Renew(t.Context(), g, b.TTL, idgen.Ceilings{10, 10}); err != nil {
			t.Fatal(err)
		}
		renewed = sent
	}
	return true
}

func oneLayout(t *testing.T, b LeaseBackend) {
	s := b.Open(t)
	mustAcquire(t, s, b.want("me", 0, 4))
	want := b.want("other", 0, 4)
	want.Layout = "another"
	if g, err := b.Open(t).Acquire(t.Context(), want); !errors.Is(err, idgen.ErrLayout) {
		t.Errorf("Acquire with another layout = %+v, %v, want ErrLayout", g, err)
	}
}

// unreachable: a context that is over is an error, and nothing else.
func unreachable(t *testing.T, b LeaseBackend) {
	s := b.Open(t)
	g := mustAcquire(t, s, b.want("me", 0, 1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Renew(ctx, g, b.long(), idgen.Ceilings{}); err == nil || errors.Is(err, idgen.ErrLeaseLost) {
		t.Errorf("Renew = %v with a context that is over", err)
	}
	if _, err := s.Acquire(ctx, b.want("other", 4, 1)); err == nil || errors.Is(err, idgen.ErrNoWorker) {
		t.Errorf("Acquire = %v with a context that is over", err)
	}
}
