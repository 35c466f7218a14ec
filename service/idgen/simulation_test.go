package idgen_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"seckill/service/idgen"
	"seckill/service/idgen/idgentest"
)

var (
	simSeed  = flag.Uint64("idgen.seed", 0, "replay the simulation of this seed only")
	simSeeds = flag.Int("idgen.seeds", 2, "number of seeds to simulate, chosen at random")
	simIDs   = flag.Int("idgen.ids", 1_000_000, "number of ids a simulation")
)

// seeds returns what to simulate. Each failure names its seed.
func seeds() []uint64 {
	if *simSeed != 0 {
		return []uint64{*simSeed}
	}
	all := make([]uint64, *simSeeds)
	for i := range all {
		all[i] = rand.Uint64N(1 << 32)
	}
	return all
}

func TestSimulation_Snowflakes(t *testing.T) {
	for _, seed := range seeds() {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { simulate(t, seed, *simIDs) })
	}
}

func TestSimulation_IsReplayable(t *testing.T) {
	for _, seed := range []uint64{1, 2, 3} {
		first, second := simulate(t, seed, 50_000), simulate(t, seed, 50_000)
		if first != second {
			t.Errorf("seed %d gave other ids the second time: %x, %x", seed, first, second)
		}
	}
}

// simulation is a few instances, more than there are pairs of workers, in a world that is out to get them. Whatever
// happens is drawn from one seed, and everything runs in the time of a synctest bubble.
type simulation struct {
	t         *testing.T
	rng       *rand.Rand
	leases    *idgentest.Leases
	instances []*instance
	ids       idgentest.Set
	print     interface {
		Write([]byte) (int, error)
		Sum64() uint64
	}
	took map[string]int
	mu   sync.Mutex // guards what observers and faults write, also in the instances
	seen map[idgen.EventKind]int

	grants int                     // leases granted so far
	used   map[int]map[int]stretch // by worker and grant
}

// stretch is the lowest and the highest id of a worker under one grant.
type stretch struct{ low, high idgen.ID }

type instance struct {
	name     string
	clock    *idgentest.Clock
	gen      *idgen.Snowflake // nil while it is down
	grant    int              // number of its present lease
	last     idgen.ID
	switched bool
}

func simulate(t *testing.T, seed uint64, ids int) (fingerprint uint64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &simulation{
			t: t, rng: rand.New(rand.NewPCG(seed, 1)), leases: &idgentest.Leases{},
			print: fnv.New64a(), seen: map[idgen.EventKind]int{}, took: map[string]int{},
			used: map[int]map[int]stretch{},
		}
		for i := range 3 {
			s.instances = append(s.instances, &instance{name: fmt.Sprint("i", i), clock: idgentest.NewClock(noon)})
		}
		for s.ids.Len() < ids && !t.Failed() {
			s.step()
		}
		s.recover()
		fingerprint = s.print.Sum64()
		if !testing.Verbose() {
			return
		}
		t.Logf("seed %d: %d ids, %v, %v", seed, s.ids.Len(), s.seen, s.took)
	})
	return fingerprint
}

// step lets one thing happen, and a little time pass.
func (s *simulation) step() {
	in := s.instances[s.rng.IntN(len(s.instances))]
	switch n := s.rng.IntN(1000); {
	case in.gen == nil:
		s.start(in)
	case n < 880:
		most := []int{1, 20, 300, 9000}[s.rng.IntN(4)/(1+s.rng.IntN(2))]
		s.take(in, 1+s.rng.IntN(most), time.Duration(s.rng.IntN(300))*time.Millisecond)
	case n < 960:
		s.stepClock(in)
	case n < 980:
		s.stop(in, n%2 == 0)
	default:
		s.trouble()
	}
	pause := []time.Duration{time.Millisecond, 10 * time.Millisecond, time.Second, 30 * time.Second}[s.rng.IntN(64)/21]
	time.Sleep(time.Duration(1 + s.rng.Int64N(int64(pause)))) // no two things in the same instant
}

func (s *simulation) options(in *instance) []idgen.Option {
	layout := idgen.DefaultLayout()
	layout.DataCenterBits, layout.WorkerBits = 0, 2
	reserve := 3 * time.Second
	if in.name == "i0" {
		reserve = 60 * time.Millisecond // a burst reaches the ceiling before it is raised
	}
	return []idgen.Option{
		idgen.WithLease(15*time.Second, reserve),
		idgen.WithLayout(layout), idgen.WithClock(in.clock.Wall), idgen.WithOwner(in.name),
		idgen.WithJitter(func(d time.Duration) time.Duration { return d * 7 / 10 }),
		idgen.WithObserver(observerFunc(func(e idgen.Event) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.seen[e.Kind]++
			if e.Kind == idgen.LeaseAcquired {
				s.grants++
				in.grant = s.grants
			}
			in.switched = in.switched || e.Kind == idgen.WorkerSwitched || e.Kind == idgen.LeaseAcquired
		})),
	}
}

// bounded runs call with a context, and expects it to end with that.
func (s *simulation) bounded(limit time.Duration, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	begun := time.Now()
	err := call(ctx)
	if took := time.Since(begun); took > limit {
		s.t.Errorf("took %s, its context ended after %s", took, limit)
	}
	return err
}

func (s *simulation) start(in *instance) {
	err := s.bounded(2*time.Second, func(ctx context.Context) (err error) {
		in.gen, err = idgen.NewSnowflake(ctx, s.leases, s.options(in)...)
		return err
	})
	s.outcome("start", err, idgentest.ErrFault, idgen.ErrNoWorker, idgen.ErrLeaseLost, context.DeadlineExceeded)
}

func (s *simulation) take(in *instance, n int, timeout time.Duration) {
	dst := make([]idgen.ID, n)
	err := s.bounded(timeout, func(ctx context.Context) error { return in.gen.NextN(ctx, dst) })
	s.outcome("take", err, idgen.ErrLeaseLost, context.DeadlineExceeded)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids.Add(s.t, dst...)
	if !in.switched && (dst[0] <= in.last || !slices.IsSorted(dst)) {
		s.t.Errorf("%s: %d follows %d", in.name, dst[0], in.last)
	}
	in.last, in.switched = dst[n-1], false
	s.inherit(in, dst)
	fmt.Fprintln(s.print, dst[0], dst[n-1])
}

// inherit checks what makes ids unique: of each worker, all ids of a later holder are above all ids of an earlier one,
// also of those that it hands out when it is one no longer. Two ids being the same is a rare sight; this is not.
func (s *simulation) inherit(in *instance, ids []idgen.ID) {
	layout := in.gen.Layout()
	for i, id := range ids {
		worker := layout.Decode(id).Worker
		if i > 0 && i < len(ids)-1 && layout.Decode(ids[i-1]).Worker == worker && layout.Decode(ids[i+1]).Worker == worker {
			continue
		}
		grants := s.used[worker]
		if grants == nil {
			grants = map[int]stretch{}
			s.used[worker] = grants
		}
		mine, ok := grants[in.grant]
		if !ok {
			mine = stretch{id, id}
		}
		mine = stretch{min(mine.low, id), max(mine.high, id)}
		grants[in.grant] = mine
		for grant, other := range grants {
			if grant < in.grant && other.high >= mine.low || grant > in.grant && other.low <= mine.high {
				s.t.Errorf("worker %d: grant %d used %v, grant %d %v", worker, in.grant, mine, grant, other)
				return
			}
		}
	}
}

func (s *simulation) stepClock(in *instance) {
	reach := []time.Duration{4, 10, 4000, 10_000, 600_000}[s.rng.IntN(5)] * time.Millisecond
	in.clock.Step(time.Duration(s.rng.Int64N(2*int64(reach))) - reach)
	if s.rng.IntN(4) == 0 {
		in.clock.Set(noon.Add(time.Since(s.epoch()))) // ntpd has its way
	}
}

// epoch is when the bubble's time began.
func (s *simulation) epoch() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

// stop ends an instance, cleanly or as if its plug were pulled: then no word of it arrives at the store any more.
func (s *simulation) stop(in *instance, clean bool) {
	if !clean {
		s.leases.Always(idgentest.Down)
		defer s.leases.Set(nil)
	}
	err := s.bounded(time.Second, in.gen.Close)
	s.outcome("stop", err, idgentest.ErrFault, context.DeadlineExceeded)
	in.gen = nil
}

// trouble changes how the store behaves, for all instances or for one of them.
func (s *simulation) trouble() {
	share, victim, seed := s.rng.IntN(101), s.rng.IntN(2*len(s.instances)), s.rng.Uint64()
	rng := rand.New(rand.NewPCG(seed, 2))
	s.leases.Set(func(_, owner string) idgentest.Fault {
		s.mu.Lock()
		defer s.mu.Unlock()
		if victim < len(s.instances) && owner[:2] != s.instances[victim].name || rng.IntN(100) >= share {
			return idgentest.None
		}
		return idgentest.Fault(rng.IntN(int(idgentest.Late) + 1))
	})
	if s.rng.IntN(2) == 0 {
		s.leases.Set(nil)
	}
}

func (s *simulation) outcome(what string, err error, allowed ...error) {
	if err == nil {
		s.took[what]++
		return
	}
	s.took[what+" failed"]++
	if !slices.ContainsFunc(allowed, func(target error) bool { return errors.Is(err, target) }) {
		s.t.Errorf("%s: %v", what, err)
	}
}

// recover ends all trouble: within the hour that a clock may have been ahead, everybody is served again.
func (s *simulation) recover() {
	s.leases.Set(nil)
	for _, in := range s.instances {
		if in.gen != nil {
			s.stop(in, true)
		}
		in.clock.Set(noon.Add(time.Since(s.epoch())))
	}
	time.Sleep(10 * time.Hour)
	for _, in := range s.instances[:2] { // there are two pairs of workers
		in.clock.Set(noon.Add(time.Since(s.epoch())))
		s.start(in)
		if in.gen == nil {
			s.t.Fatalf("%s does not start again", in.name)
		}
		if err := in.gen.NextN(s.t.Context(), make([]idgen.ID, 10_000)); err != nil {
			s.t.Error(err)
		}
		s.stop(in, true)
	}
}
