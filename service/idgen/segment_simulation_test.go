package idgen_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"seckill/service/idgen"
	"seckill/service/idgen/idgentest"
)

func TestSimulation_Segments(t *testing.T) {
	for _, seed := range seeds() {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &segmentSimulation{t: t, rng: rand.New(rand.NewPCG(seed, 3))}
				for range 3 {
					s.instances = append(s.instances, &segmentInstance{})
				}
				for s.ids.Len() < *simIDs && !t.Failed() {
					s.step()
				}
				s.store.Set(nil)
				for _, in := range s.instances {
					if in.gen != nil {
						mustTake(t, in.gen, 100_000)
						mustClose(t, in.gen)
					}
				}
				t.Logf("%d ids of %d, faults down %d, lost %d, repeat %d, hang %d, late %d", s.ids.Len(), s.store.Highest(),
					s.store.Count(idgentest.Down), s.store.Count(idgentest.Lost), s.store.Count(idgentest.Repeat),
					s.store.Count(idgentest.Hang), s.store.Count(idgentest.Late))
			})
		})
	}
}

// segmentSimulation is a few instances on one store in trouble, with several calls at once in each.
type segmentSimulation struct {
	t         *testing.T
	rng       *rand.Rand
	store     idgentest.Ranges
	instances []*segmentInstance
	mu        sync.Mutex // guards ids, and the randomness of faults
	ids       idgentest.Set
}

type segmentInstance struct {
	gen  *idgen.Segment // nil while it is down
	last idgen.ID
}

func (s *segmentSimulation) step() {
	in := s.instances[s.rng.IntN(len(s.instances))]
	switch n := s.rng.IntN(1000); {
	case in.gen == nil:
		s.start(in)
	case n < 950:
		s.take(in)
	case n < 970:
		mustClose(s.t, in.gen) // a crash is the same: what was loaded is lost
		in.gen = nil
	case n < 980:
		s.store.SetLeast(int64(1 + s.rng.IntN(2000)))
	default:
		s.trouble()
	}
	if s.rng.IntN(4) == 0 {
		time.Sleep(time.Duration(s.rng.Int64N(int64(time.Minute))))
	}
}

func (s *segmentSimulation) start(in *segmentInstance) {
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Second)
	defer cancel()
	gen, err := idgen.NewSegment(ctx, &s.store, idgen.WithStep(1, 5000), idgen.WithLoadAt(s.rng.Float64()),
		idgen.WithTarget(time.Minute), idgen.WithLoadTimeout(100*time.Millisecond))
	if err != nil {
		if !errors.Is(err, context.DeadlineExceeded) {
			s.t.Error(err)
		}
		return
	}
	in.gen, in.last = gen, 0
}

// take lets several calls race, each within its own time.
func (s *segmentSimulation) take(in *segmentInstance) {
	var wg sync.WaitGroup
	floor := in.last
	for range 1 + s.rng.IntN(4) {
		n, timeout := 1+s.rng.IntN([]int{3, 100, 3000}[s.rng.IntN(3)]), time.Duration(s.rng.IntN(200))*time.Millisecond
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(s.t.Context(), timeout)
			defer cancel()
			dst, begun := make([]idgen.ID, n), time.Now()
			err := in.gen.NextN(ctx, dst)
			s.mu.Lock()
			defer s.mu.Unlock()
			if took := time.Since(begun); took > timeout {
				s.t.Errorf("took %s, its context ended after %s", took, timeout)
			}
			if err != nil {
				if !errors.Is(err, context.DeadlineExceeded) {
					s.t.Error(err)
				}
				return
			}
			s.ids.Add(s.t, dst...)
			if dst[0] <= floor {
				s.t.Errorf("%d comes after %d", dst[0], floor)
			}
			in.last = max(in.last, dst[n-1])
		})
	}
	wg.Wait()
}

func (s *segmentSimulation) trouble() {
	if s.rng.IntN(2) == 0 {
		s.store.Set(nil)
		return
	}
	share, rng := s.rng.IntN(101), rand.New(rand.NewPCG(s.rng.Uint64(), 4))
	s.store.Set(func(string, string) idgentest.Fault {
		s.mu.Lock()
		defer s.mu.Unlock()
		if rng.IntN(100) >= share {
			return idgentest.None
		}
		return idgentest.Fault(rng.IntN(int(idgentest.Late) + 1))
	})
}
