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

func atNoon() idgen.Option { return idgen.WithClock(idgentest.NewClock(noon).Wall) }

func TestLease_StoreDownAtStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leases := &idgentest.Leases{}
		leases.Always(idgentest.Down)
		if _, err := idgen.NewSnowflake(t.Context(), leases, atNoon()); !errors.Is(err, idgentest.ErrFault) {
			t.Errorf("start = %v, want the store's error", err)
		}
		// The lease can be had, but its ceiling not stored.
		leases.Set(func(op, _ string) idgentest.Fault {
			if op == "renew" {
				return idgentest.Down
			}
			return idgentest.None
		})
		if _, err := idgen.NewSnowflake(t.Context(), leases, atNoon()); !errors.Is(err, idgentest.ErrFault) {
			t.Errorf("start = %v, want the store's error", err)
		}
		for _, grant := range leases.Pairs() {
			if grant.Owner != "" {
				t.Errorf("pair %d stays with %s after a start that failed", grant.Pair, grant.Owner)
			}
		}
	})
}

func TestLease_StoreDownLaterIsSurvivedUntilTheDeadline(t *testing.T) {
	for _, fault := range []idgentest.Fault{idgentest.Down, idgentest.Hang, idgentest.Lost, idgentest.Late} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			defer r.close()
			time.Sleep(900 * time.Millisecond) // just before the next renewal
			r.leases.Always(fault)
			for range 126 { // 12.6 s: the lease of 15 s, less the tenth for clocks and the time since its renewal
				r.take(1000)
				time.Sleep(100 * time.Millisecond)
			}
			time.Sleep(100 * time.Millisecond)
			if id, err := r.gen.Next(t.Context()); !errors.Is(err, idgen.ErrLeaseLost) {
				t.Errorf("fault %d: Next = %d, %v after the deadline, want ErrLeaseLost", fault, id, err)
			}
			if n := r.leases.Count(fault); n == 0 {
				t.Errorf("no request met the fault %d", fault)
			}
			if _, n := r.saw(idgen.LeaseFailed); n == 0 {
				t.Errorf("fault %d: nobody was told", fault)
			}
			r.leases.Set(nil)
			time.Sleep(10 * time.Second)
			r.next()
		})
	}
}

// Whatever the demand, no id reaches a ceiling that is not stored.
func TestLease_CeilingIsStoredAheadOfUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, idgen.WithLease(15*time.Second, 60*time.Millisecond))
		defer r.close()
		r.leases.Always(idgentest.Down)
		last := idgen.ID(0)
		for {
			ids := make([]idgen.ID, 1000)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			err := r.gen.NextN(ctx, ids)
			cancel()
			if errors.Is(err, context.DeadlineExceeded) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			r.ids.Add(t, ids...)
			last = ids[len(ids)-1]
		}
		p := r.gen.Layout().Decode(last)
		ceiling := time.UnixMilli(r.leases.Pairs()[p.Worker/2].Ceilings[p.Worker%2])
		if !p.Time.Before(ceiling) || ceiling.Sub(p.Time) > 2*time.Millisecond {
			t.Errorf("the last id is of %s, want it just below the ceiling %s", p.Time, ceiling)
		}
		r.leases.Set(nil)
		r.next()
	})
}

// lateAnswers is a store that does at once what it is asked to, and says so later.
type lateAnswers struct{ *idgentest.Leases }

const answerDelay = 4 * time.Second

func (l lateAnswers) Renew(ctx context.Context, held idgen.Grant, ttl time.Duration, c idgen.Ceilings) error {
	err := l.Leases.Renew(ctx, held, ttl, c)
	time.Sleep(answerDelay)
	return err
}

// The store counts the lease from when it was asked, so the holder must not count it from when it was told.
func TestLease_DeadlineIsCountedFromTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := idgen.NewSnowflake(t.Context(), lateAnswers{&idgentest.Leases{}}, atNoon())
		if err != nil {
			t.Fatal(err)
		}
		defer mustClose(t, g)
		if left, most := g.Stats().LeaseLeft, 15*time.Second-answerDelay; left >= most {
			t.Errorf("%s left, want less than the %s that the store has", left, most)
		}
	})
}

func TestLease_HolderThatIsTakenOverStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := idgen.WithLayout(onePair())
		r := newRig(t, one)
		old := r.gen
		r.take(100)
		// The old holder's requests hang. Its lease runs out at the store, and another instance takes the pair.
		owners := map[string]bool{}
		for _, grant := range r.leases.Pairs() {
			owners[grant.Owner] = true
		}
		r.leases.Set(func(_, owner string) idgentest.Fault {
			if owners[owner] {
				return idgentest.Hang
			}
			return idgentest.None
		})
		if _, err := idgen.NewSnowflake(t.Context(), r.leases, one, atNoon()); !errors.Is(err, idgen.ErrNoWorker) {
			t.Fatalf("a second start got %v while the lease stands, want ErrNoWorker", err)
		}
		time.Sleep(15 * time.Second)
		r.start(one)
		r.take(100)
		if id, err := old.Next(t.Context()); !errors.Is(err, idgen.ErrLeaseLost) {
			t.Errorf("Next of the old holder = %d, %v", id, err)
		}
		r.leases.Set(nil)
		time.Sleep(10 * time.Second) // the old one finds no worker, as long as the new one lives
		if id, err := old.Next(t.Context()); !errors.Is(err, idgen.ErrLeaseLost) {
			t.Errorf("Next of the old holder = %d, %v", id, err)
		}
		r.close()
		time.Sleep(10 * time.Second)
		r.gen = old
		r.next()
		r.close()
	})
}

// A holder whose clock runs slower than the store's believes in its lease for too long. Its ids stay below its ceiling, and
// those of its successor are above it.
func TestLease_LateHolderRepeatsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := idgen.WithLayout(onePair())
		leases := hastyLeases{&idgentest.Leases{}}
		old, err := idgen.NewSnowflake(t.Context(), leases, one, atNoon())
		if err != nil {
			t.Fatal(err)
		}
		var ids idgentest.Set
		takeFrom := func(g idgen.Generator) {
			t.Helper()
			dst := make([]idgen.ID, 5000)
			if err := g.NextN(t.Context(), dst); err != nil {
				t.Fatal(err)
			}
			ids.Add(t, dst...)
		}
		takeFrom(old)
		holder := leases.Pairs()[0].Owner
		leases.Set(func(_, owner string) idgentest.Fault { // the old holder cannot renew
			if owner == holder {
				return idgentest.Down
			}
			return idgentest.None
		})
		time.Sleep(2 * time.Second)
		ahead := idgen.WithClock(idgentest.NewClock(noon.Add(time.Second)).Wall)
		successor, err := idgen.NewSnowflake(t.Context(), leases, one, ahead)
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			takeFrom(old)
			takeFrom(successor)
		}
		leases.Set(nil)
		for _, g := range []idgen.Generator{successor, old} {
			if err := g.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
}

// hastyLeases is a store whose clock is ten times as fast as the holders': leases end early.
type hastyLeases struct{ *idgentest.Leases }

func (l hastyLeases) Acquire(ctx context.Context, want idgen.LeaseRequest) (idgen.Grant, error) {
	want.TTL /= 10
	return l.Leases.Acquire(ctx, want)
}

func (l hastyLeases) Renew(ctx context.Context, held idgen.Grant, ttl time.Duration, c idgen.Ceilings) error {
	return l.Leases.Renew(ctx, held, ttl/10, c)
}

func TestLease_EveryWorkerOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leases := &idgentest.Leases{}
		layout := idgen.DefaultLayout()
		layout.DataCenterBits, layout.WorkerBits = 0, 10
		start := func() (*idgen.Snowflake, error) {
			return idgen.NewSnowflake(t.Context(), leases, idgen.WithLayout(layout), atNoon())
		}
		var mu sync.Mutex
		workers, gens := map[int]bool{}, []*idgen.Snowflake{}
		var wg sync.WaitGroup
		for range 512 {
			wg.Go(func() { // all start together
				g, err := start()
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				pair := g.Stats().Worker / 2
				if workers[pair] {
					t.Errorf("pair %d was leased twice", pair)
				}
				workers[pair] = true
				gens = append(gens, g)
			})
		}
		wg.Wait()
		if g, err := start(); !errors.Is(err, idgen.ErrNoWorker) {
			t.Errorf("the 1,025th worker: %v, %v, want ErrNoWorker", g, err)
		}
		if err := gens[0].Close(t.Context()); err != nil {
			t.Error(err)
		}
		g, err := start()
		if err != nil {
			t.Fatalf("after one was given back: %v", err)
		}
		for _, g := range append(gens[1:], g) {
			if err := g.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// Neither a name nor an address decides on the worker: two instances that look the same get different ones.
func TestLease_SameNameIsNotTheSameOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, idgen.WithOwner("shop-0"))
		first := r.gen
		r.start(idgen.WithOwner("shop-0"))
		if a, b := first.Stats().Worker, r.gen.Stats().Worker; a/2 == b/2 {
			t.Errorf("both are worker %d", a)
		}
		r.close()
		r.gen = first
		r.close()
	})
}

func TestStatic_WorkerMustFit(t *testing.T) {
	for _, worker := range []int{-1, -2, 32, 1024} { // data centre 0 has the workers 0 to 31
		g, err := idgen.NewSnowflake(t.Context(), idgen.NewStatic(worker))
		if !errors.Is(err, idgen.ErrNoWorker) {
			t.Errorf("worker %d: %v, %v, want ErrNoWorker", worker, g, err)
		}
	}
	g, err := idgen.NewSnowflake(t.Context(), idgen.NewStatic(2*32+7), idgen.WithDataCenter(2))
	if err != nil {
		t.Fatal(err)
	}
	defer mustClose(t, g)
	if p := g.Layout().Decode(mustTake(t, g, 1)[0]); p.DataCenter != 2 || p.Worker|1 != 7 {
		t.Errorf("%+v, want data centre 2, worker 6 or 7", p)
	}
}
