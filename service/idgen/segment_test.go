package idgen_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"seckill/service/idgen"
	"seckill/service/idgen/idgentest"
)

func TestSegment(t *testing.T) {
	for name, opts := range map[string][]idgen.SegmentOption{
		"double": nil, "late": {idgen.WithLoadAt(0.75)}, "single": {idgen.WithLoadAt(1)},
		"tiny": {idgen.WithStep(50, 50)},
	} {
		t.Run(name, func(t *testing.T) {
			idgentest.Run(t, func(t *testing.T) idgentest.New {
				store := &idgentest.Ranges{}
				return func(t *testing.T) idgen.Generator { return newSegment(t, store, opts...) }
			})
		})
	}
}

func newSegment(t *testing.T, store idgen.RangeStore, opts ...idgen.SegmentOption) *idgen.Segment {
	t.Helper()
	g, err := idgen.NewSegment(t.Context(), store, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func mustClose(t *testing.T, g idgen.Generator) {
	t.Helper()
	if err := g.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

func mustTake(t *testing.T, g idgen.Generator, n int) []idgen.ID {
	t.Helper()
	ids := make([]idgen.ID, n)
	if err := g.NextN(t.Context(), ids); err != nil {
		t.Fatal(err)
	}
	return ids
}

func TestSegment_LoadsTheNextInTime(t *testing.T) {
	for part, trigger := range map[float64]int{0: 1, 0.1: 101, 0.75: 751, 1: 1001} {
		synctest.Test(t, func(t *testing.T) {
			store := &idgentest.Ranges{}
			g := newSegment(t, store, idgen.WithLoadAt(part), idgen.WithStep(1000, 1000))
			defer mustClose(t, g)
			mustTake(t, g, trigger-1)
			synctest.Wait()
			if n := store.Count(idgentest.None); n != 1 {
				t.Errorf("part %g: %d loads before id %d, want 1", part, n, trigger)
			}
			mustTake(t, g, 1)
			synctest.Wait()
			if n := store.Count(idgentest.None); n != 2 {
				t.Errorf("part %g: %d loads after id %d, want 2", part, n, trigger)
			}
		})
	}
}

// slowRanges takes its time for each load and counts those in flight at once.
type slowRanges struct {
	idgentest.Ranges
	took               time.Duration
	flying, mostAtOnce atomic.Int64
}

func (s *slowRanges) Allocate(ctx context.Context, n int64) (idgen.Range, error) {
	now := s.flying.Add(1)
	defer s.flying.Add(-1)
	s.mostAtOnce.Store(max(s.mostAtOnce.Load(), now))
	time.Sleep(s.took)
	return s.Ranges.Allocate(ctx, n)
}

// Both segments are empty, and many calls find out at once: one load serves them all, in the order of the ids.
func TestSegment_BothEmptyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowRanges{took: 20 * time.Millisecond}
		g := newSegment(t, store, idgen.WithStep(10, 10))
		defer mustClose(t, g)
		var (
			mu  sync.Mutex
			wg  sync.WaitGroup
			ids idgentest.Set
		)
		for range 50 {
			wg.Go(func() {
				mine := mustTake(t, g, 20)
				mu.Lock()
				defer mu.Unlock()
				ids.Add(t, mine...)
				if !slices.IsSorted(mine) {
					t.Error("the ids of one call do not ascend")
				}
			})
		}
		wg.Wait()
		if n := store.mostAtOnce.Load(); n != 1 {
			t.Errorf("%d loads at once, want 1", n)
		}
		if want := int64(1020); store.Highest() > want {
			t.Errorf("the store gave %d ids for 1000, want %d at most", store.Highest(), want)
		}
	})
}

func TestSegment_WaitIsBoundedByContext(t *testing.T) {
	for _, fault := range []idgentest.Fault{idgentest.Down, idgentest.Hang} {
		synctest.Test(t, func(t *testing.T) {
			store := &idgentest.Ranges{}
			g := newSegment(t, store, idgen.WithStep(10, 10), idgen.WithLoadTimeout(50*time.Millisecond))
			defer mustClose(t, g)
			store.Always(fault)
			mustTake(t, g, 10)
			ctx, cancel := context.WithTimeout(t.Context(), 70*time.Millisecond)
			defer cancel()
			before := time.Now()
			_, err := g.Next(ctx)
			if took := time.Since(before); !errors.Is(err, context.DeadlineExceeded) || took != 70*time.Millisecond {
				t.Errorf("Next = %v after %s, want the context's end after 70 ms", err, took)
			}
			if fault == idgentest.Down && !errors.Is(err, idgentest.ErrFault) {
				t.Errorf("Next = %v, want it to say what is wrong with the store", err)
			}
			if store.Count(fault) == 0 || g.Stats().Failures == 0 {
				t.Errorf("fault %d was met %d times, failures %d", fault, store.Count(fault), g.Stats().Failures)
			}
			store.Set(nil)
			id, err := g.Next(t.Context())
			if err != nil || id != 11 {
				t.Errorf("Next = %d, %v: no id may be lost by those who gave up", id, err)
			}
		})
	}
}

func TestSegment_IgnoresLateRanges(t *testing.T) {
	for fault, want := range map[idgentest.Fault]idgen.ID{idgentest.Late: 11, idgentest.Lost: 21, idgentest.Repeat: 21} {
		synctest.Test(t, func(t *testing.T) {
			store := &idgentest.Ranges{}
			g := newSegment(t, store, idgen.WithStep(10, 10), idgen.WithLoadAt(1))
			defer mustClose(t, g)
			mustTake(t, g, 10)
			var met atomic.Bool
			store.Set(func(string, string) idgentest.Fault {
				if met.Swap(true) {
					return idgentest.None
				}
				return fault
			})
			if id, err := g.Next(t.Context()); id != want || err != nil {
				t.Errorf("fault %d: Next = %d, %v, want %d", fault, id, err, want)
			}
			if n := store.Count(fault); n != 1 {
				t.Errorf("fault %d met %d times, want 1", fault, n)
			}
			time.Sleep(time.Minute) // the late one takes effect
			if ids := mustTake(t, g, 20); ids[9] < 11 {
				t.Error(ids)
			}
		})
	}
}

func TestSegment_RefusesAStoreThatGoesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &idgentest.Ranges{}
		g := newSegment(t, store, idgen.WithStep(10, 10), idgen.WithLoadAt(1))
		defer mustClose(t, g)
		mustTake(t, g, 10)
		store.SetHighest(3)
		for range 3 {
			if id, err := g.Next(t.Context()); !errors.Is(err, idgen.ErrCounterLost) {
				t.Errorf("Next = %d, %v, want ErrCounterLost", id, err)
			}
		}
		if n := store.Count(idgentest.None); n != 2 {
			t.Errorf("%d requests, want 2: a refusal is not asked about again at once", n)
		}
		store.SetHighest(500)
		time.Sleep(time.Second)
		if id, err := g.Next(t.Context()); id != 501 || err != nil {
			t.Errorf("Next = %d, %v after the store is restored", id, err)
		}
	})
}

func TestSegment_Exhausted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &idgentest.Ranges{}
		store.SetHighest(math.MaxInt64 - 10)
		g := newSegment(t, store, idgen.WithStep(10, 10))
		defer mustClose(t, g)
		ids := mustTake(t, g, 10)
		if ids[9] != math.MaxInt64 {
			t.Errorf("last id %d, want the highest there is", ids[9])
		}
		for range 3 {
			if id, err := g.Next(t.Context()); !errors.Is(err, idgen.ErrExhausted) {
				t.Errorf("Next = %d, %v, want ErrExhausted", id, err)
			}
		}
	})
}

func TestSegment_StoreDownAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &idgentest.Ranges{}
		store.Always(idgentest.Down)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := idgen.NewSegment(ctx, store); !errors.Is(err, idgentest.ErrFault) {
			t.Errorf("start = %v, want the store's error", err)
		}
	})
}

func TestSegment_ClosedWhileCallsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &idgentest.Ranges{}
		g := newSegment(t, store, idgen.WithStep(10, 10), idgen.WithLoadAt(1))
		mustTake(t, g, 10)
		store.Always(idgentest.Hang)
		results := make(chan error, 10)
		for range cap(results) {
			go func() {
				_, err := g.Next(context.Background())
				results <- err
			}()
		}
		synctest.Wait()
		if n := g.Stats().Waiting; n != int64(cap(results)) {
			t.Errorf("%d calls wait, want %d", n, cap(results))
		}
		before := time.Now()
		mustClose(t, g)
		for range cap(results) {
			if err := <-results; !errors.Is(err, idgen.ErrClosed) {
				t.Errorf("waiting call got %v, want ErrClosed", err)
			}
		}
		if took := time.Since(before); took != 0 {
			t.Errorf("stopping took %s", took)
		}
	})
}

func TestSegment_StepFollowsDemand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &idgentest.Ranges{}
		g := newSegment(t, store, idgen.WithStep(100, 1600), idgen.WithTarget(time.Minute))
		defer mustClose(t, g)
		use := func(perSecond int, d time.Duration) {
			for range d / time.Second {
				mustTake(t, g, perSecond)
				time.Sleep(time.Second)
			}
		}
		for _, phase := range []struct {
			perSecond int
			want      int64
		}{{1, 100}, {100, 1600}, {10, 800}, {1, 100}} {
			use(phase.perSecond, time.Hour)
			if got := g.Stats().Step; got != phase.want {
				t.Errorf("step %d after an hour of %d/s, want %d", got, phase.perSecond, phase.want)
			}
		}
		store.SetLeast(5000)
		use(10, 2*time.Minute) // what was loaded before is used up, and one of the new ones begins
		if got := g.Stats().Step; got != 5000 {
			t.Errorf("step %d, want the raised minimum of 5000 at once", got)
		}
	})
}
