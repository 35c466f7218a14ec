package idgentest

import (
	"context"
	"sync"
	"testing"

	"seckill/service/idgen"
)

// RunRanges checks the contract of idgen.RangeStore. It calls newBackend once a subtest, for an empty backend, of which
// open returns a store as a process of its own would have it.
func RunRanges(t *testing.T, newBackend func(t *testing.T) (open func(t *testing.T) idgen.RangeStore)) {
	t.Run("racing", func(t *testing.T) { rangesRacing(t, newBackend(t)) })
	t.Run("ascending", func(t *testing.T) { rangesAscend(t, newBackend(t)(t)) })
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if got, err := newBackend(t)(t).Allocate(ctx, 10); err == nil {
			t.Errorf("Allocate = %+v with a context that is over", got)
		}
	})
}

func rangesAscend(t *testing.T, s idgen.RangeStore) {
	last := idgen.ID(0)
	for _, n := range []int64{1, 5000, 7, 1_000_000, 1} {
		got, err := s.Allocate(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		if got.First <= last || got.Count < n || got.Least > got.Count {
			t.Fatalf("Allocate(%d) = %+v after %d", n, got, last)
		}
		last = got.First + idgen.ID(got.Count) - 1
	}
}

// rangesRacing: what is handed out by several processes at once does not overlap.
func rangesRacing(t *testing.T, open func(t *testing.T) idgen.RangeStore) {
	var (
		mu  sync.Mutex
		wg  sync.WaitGroup
		ids Set
	)
	for i := range 4 {
		s := open(t)
		wg.Go(func() {
			for range 10 {
				got, err := s.Allocate(t.Context(), int64(100+i))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for n := range got.Count {
					ids.Add(t, got.First+idgen.ID(n))
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}
