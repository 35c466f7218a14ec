package idgen_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"seckill/service/idgen"
	"seckill/service/idgen/idgentest"
)

// stubborn is a store that, once it is told to, does not answer and takes no notice of contexts.
type stubborn struct {
	idgentest.Leases
	idgentest.Ranges
	release chan struct{} // nil: it answers
	mu      sync.Mutex
}

func (s *stubborn) hang() (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.release = make(chan struct{})
	return func() { close(s.release) }
}

func (s *stubborn) wait() {
	s.mu.Lock()
	release := s.release
	s.mu.Unlock()
	if release != nil {
		<-release
	}
}

func (s *stubborn) Renew(ctx context.Context, held idgen.Grant, ttl time.Duration, c idgen.Ceilings) error {
	s.wait()
	return s.Leases.Renew(ctx, held, ttl, c)
}

func (s *stubborn) Allocate(ctx context.Context, n int64) (idgen.Range, error) {
	s.wait()
	return s.Ranges.Allocate(ctx, n)
}

func TestClose_LowersTheCeiling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, idgen.WithLayout(onePair()))
		p, _ := r.next()
		held := r.leases.Pairs()[0].Ceilings[0]
		if want := noon.Add(3 * time.Second).UnixMilli(); held != want {
			t.Errorf("ceiling %d while in use, want %d: 3 s ahead", held, want)
		}
		r.close()
		if got, want := r.leases.Pairs()[0].Ceilings[0], p.Time.UnixMilli()+1; got != want {
			t.Errorf("ceiling %d after the stop, want %d: the millisecond after the last id", got, want)
		}
	})
}

func TestClose_IsBoundedByContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &stubborn{}
		flake, err := idgen.NewSnowflake(t.Context(), store, atNoon())
		if err != nil {
			t.Fatal(err)
		}
		segment := newSegment(t, store, idgen.WithStep(10, 10))
		end := store.hang()
		mustTake(t, segment, 10)    // the next load hangs
		time.Sleep(2 * time.Second) // and the next renewal
		for _, g := range []idgen.Generator{flake, segment} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			before := time.Now()
			err := g.Close(ctx)
			cancel()
			if took := time.Since(before); !errors.Is(err, context.DeadlineExceeded) || took != time.Second {
				t.Errorf("Close of %T = %v after %s, want it to give up with its context", g, err, took)
			}
		}
		end()
	})
}
