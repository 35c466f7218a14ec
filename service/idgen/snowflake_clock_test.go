package idgen_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"seckill/service/idgen"
	"seckill/service/idgen/idgentest"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func TestClock_BackALittleIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.close()
		before, _ := r.next()
		r.clock.Step(-5 * time.Millisecond)
		time.Sleep(time.Millisecond) // the clock is read once a millisecond
		after, took := r.next()
		if took != 4*time.Millisecond {
			t.Errorf("waited for %s, want the 4 ms that the clock is behind", took)
		}
		if after.Time.Before(before.Time) || after.Time.After(r.clock.Wall()) {
			t.Errorf("id of %s follows id of %s while the clock shows %s", after.Time, before.Time, r.clock.Wall())
		}
		if e, n := r.saw(idgen.ClockWait); n != 1 || e.Step != 4*time.Millisecond {
			t.Errorf("clock-wait seen %d times, last %v", n, e)
		}
	})
}

func TestClock_BackALittleIsNotWaitedForWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.close()
		r.next()
		time.Sleep(10 * time.Millisecond)
		r.clock.Step(-4 * time.Millisecond)
		if p, took := r.next(); took != 0 || !p.Time.Equal(r.clock.Wall().Truncate(time.Millisecond)) {
			t.Errorf("id of %s took %s, want one of %s at once: no id has reached that time", p.Time, took, r.clock.Wall())
		}
	})
}

func TestClock_WaitIsBoundedByContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, idgen.WithTolerance(time.Hour))
		defer r.close()
		r.next()
		r.clock.Step(-time.Minute)
		time.Sleep(time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 70*time.Millisecond)
		defer cancel()
		before := time.Now()
		if _, err := r.gen.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Next = %v, want the context's end", err)
		}
		if took := time.Since(before); took != 70*time.Millisecond {
			t.Errorf("gave up after %s, want 70ms", took)
		}
		if n := r.gen.Stats().Waiting; n != 0 {
			t.Errorf("%d calls wait, want none", n)
		}
	})
}

func TestClock_BackMoreContinuesFromHighestTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.close()
		before, _ := r.next()
		r.clock.Step(-3 * time.Second)
		time.Sleep(time.Millisecond)
		after, took := r.next()
		if took != 0 || !after.Time.Equal(before.Time) || after.Sequence != before.Sequence+1 {
			t.Errorf("after %+v came %+v in %s, want the next sequence at once", before, after, took)
		}
		if p := r.take(3 * 4096); p.Time.Sub(before.Time) != 3*time.Millisecond {
			t.Errorf("three milliseconds of ids end at %s, want 3ms after %s", p.Time, before.Time)
		}
		if e, n := r.saw(idgen.ClockAhead); n != 1 || e.Step != 2999*time.Millisecond {
			t.Errorf("clock-ahead seen %d times, last %v", n, e)
		}
		time.Sleep(4 * time.Second)
		if p, _ := r.next(); !p.Time.Equal(r.clock.Wall().Truncate(time.Millisecond)) {
			t.Errorf("id of %s, want the time of the clock, %s, which has caught up", p.Time, r.clock.Wall())
		}
	})
}

func TestClock_FarBackSwitchesToBackupWorkerAndBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.close()
		first, _ := r.next()
		r.clock.Step(-time.Minute)
		time.Sleep(time.Millisecond)
		second, took := r.next()
		if second.Worker != first.Worker^1 || took != 0 {
			t.Errorf("worker %d follows %d after %s, want its neighbour at once", second.Worker, first.Worker, took)
		}
		if second.Time.After(r.clock.Wall()) {
			t.Errorf("id of %s, the clock shows %s", second.Time, r.clock.Wall())
		}
		time.Sleep(2 * time.Minute)
		r.next()
		r.clock.Step(-30 * time.Second) // before the highest time of the second worker, after that of the first
		time.Sleep(time.Millisecond)
		if p, took := r.next(); p.Worker != first.Worker || took != 0 {
			t.Errorf("%+v after %s, want worker %d again, at once", p, took, first.Worker)
		}
		time.Sleep(time.Millisecond) // by now its ceiling is raised and lets it follow the clock
		if p, _ := r.next(); p.Worker != first.Worker || !p.Time.Equal(r.clock.Wall().Truncate(time.Millisecond)) {
			t.Errorf("%+v, want worker %d at %s", p, first.Worker, r.clock.Wall())
		}
		if e, n := r.saw(idgen.WorkerSwitched); n != 2 || e.Worker != first.Worker {
			t.Errorf("switched %d times, last %+v", n, e)
		}
	})
}

func TestClock_WaitsWhenNeitherWorkerIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.close()
		for range 2 {
			r.next()
			r.clock.Step(-time.Minute)
			time.Sleep(time.Millisecond)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if id, err := r.gen.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Next = %d, %v, want to wait", id, err)
		}
		// The second worker got as far as a minute less; five seconds before that it may be used again.
		if p, took := r.next(); took < 53*time.Second || took > 55*time.Second {
			t.Errorf("id %+v after %s, want it after 54 s", p, took)
		}
	})
}

func TestClock_NoRepeatAcrossRestarts(t *testing.T) {
	for name, step := range map[string]time.Duration{
		"same clock": 0, "inside the reserve": -2 * time.Second, "hours back": -3 * time.Hour, "hours ahead": 3 * time.Hour,
	} {
		for _, clean := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, idgen.WithLayout(onePair()))
				for range 6 {
					r.take(10_000)
					if clean {
						r.close()
					} else {
						r.crash()
					}
					r.clock.Step(step)
					time.Sleep(20 * time.Second)
					r.start(idgen.WithLayout(onePair()))
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					id, err := r.gen.Next(ctx)
					cancel()
					if errors.Is(err, context.DeadlineExceeded) && step < -time.Hour {
						break // both workers are ahead of the clock by hours: nothing is left but to wait
					}
					if err != nil {
						t.Fatalf("%s, clean %v: %v", name, clean, err)
					}
					r.ids.Add(t, id)
				}
				r.close()
			})
		}
	}
}

// While a call waits for the next millisecond, because the sequence of the present one is used up, the clock goes back:
// by a little, which the call waits for; by more, which makes it go on ahead; by so much that the neighbour takes over.
func TestClock_BackWhileACallWaits(t *testing.T) {
	for _, step := range []time.Duration{-3 * time.Millisecond, -2 * time.Second, -time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, idgen.WithBurst(0))
			defer r.close()
			first := r.take(4096)
			took := make(chan time.Duration, 1)
			go func() {
				_, waited := r.next()
				took <- waited
			}()
			synctest.Wait()
			if n := r.gen.Stats().Waiting; n != 1 {
				t.Fatalf("%d calls wait, want 1", n)
			}
			r.clock.Step(step)
			if waited := <-took; waited < time.Millisecond || waited > 5*time.Millisecond {
				t.Errorf("step of %s: waited for %s", step, waited)
			}
			p := r.take(4096)
			if _, n := r.saw(idgen.WorkerSwitched); n == 1 != (step == -time.Hour) || n == 1 != (p.Worker != first.Worker) {
				t.Errorf("step of %s: switched %d times, from worker %d to %d", step, n, first.Worker, p.Worker)
			}
		})
	}
}

func TestSnowflake_ClosedWhileCallsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.next()
		r.clock.Step(-time.Minute)
		r.leases.Always(idgentest.Hang) // so that the backup worker gets no ceiling
		time.Sleep(time.Millisecond)
		results := make(chan error, 10)
		for range cap(results) {
			go func() {
				_, err := r.gen.Next(context.Background())
				results <- err
			}()
		}
		synctest.Wait()
		if n := r.gen.Stats().Waiting; n != int64(cap(results)) {
			t.Errorf("%d calls wait, want %d", n, cap(results))
		}
		r.leases.Set(nil)
		before := time.Now()
		r.close()
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
