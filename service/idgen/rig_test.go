package idgen_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"seckill/service/idgen"
	"seckill/service/idgen/idgentest"
)

// rig is a Snowflake in a synctest bubble, on a clock and a lease store that the test has in hand.
type rig struct {
	t      *testing.T
	clock  *idgentest.Clock
	leases *idgentest.Leases
	gen    *idgen.Snowflake
	mu     sync.Mutex
	events []idgen.Event
	ids    idgentest.Set
}

func newRig(t *testing.T, opts ...idgen.Option) *rig {
	r := &rig{t: t, clock: idgentest.NewClock(noon), leases: &idgentest.Leases{}}
	r.start(opts...)
	return r
}

// start makes a new generator on the rig's clock and store.
func (r *rig) start(opts ...idgen.Option) {
	r.t.Helper()
	opts = append([]idgen.Option{idgen.WithClock(r.clock.Wall), idgen.WithObserver(r)}, opts...)
	gen, err := idgen.NewSnowflake(r.t.Context(), r.leases, opts...)
	if err != nil {
		r.t.Fatal(err)
	}
	r.gen = gen
}

// IDEvent implements idgen.Observer.
func (r *rig) IDEvent(e idgen.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

func (r *rig) saw(kind idgen.EventKind) (last idgen.Event, times int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		if e.Kind == kind {
			last, times = e, times+1
		}
	}
	return last, times
}

func (r *rig) close() {
	r.t.Helper()
	if err := r.gen.Close(context.Background()); err != nil {
		r.t.Error(err)
	}
}

// next takes an id, which has to be new, and returns its parts and how long it took.
func (r *rig) next() (idgen.Parts, time.Duration) {
	r.t.Helper()
	before := time.Now()
	id, err := r.gen.Next(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	r.ids.Add(r.t, id)
	return r.gen.Layout().Decode(id), time.Since(before)
}

// take takes n ids at once.
func (r *rig) take(n int) idgen.Parts {
	r.t.Helper()
	ids := make([]idgen.ID, n)
	if err := r.gen.NextN(r.t.Context(), ids); err != nil {
		r.t.Fatal(err)
	}
	r.ids.Add(r.t, ids...)
	return r.gen.Layout().Decode(ids[n-1])
}

// crash ends the generator without its giving anything back.
func (r *rig) crash() {
	r.leases.Always(idgentest.Down)
	if err := r.gen.Close(context.Background()); !errors.Is(err, idgentest.ErrFault) {
		r.t.Errorf("Close = %v, want it to fail: the store is away", err)
	}
	r.leases.Set(nil)
}

// onePair is a layout with one pair of workers, so that every start gets the same.
func onePair() idgen.Layout {
	l := idgen.DefaultLayout()
	l.DataCenterBits, l.WorkerBits = 0, 1
	return l
}

// observerFunc is a function as an idgen.Observer.
type observerFunc func(idgen.Event)

// IDEvent implements idgen.Observer.
func (f observerFunc) IDEvent(e idgen.Event) { f(e) }
