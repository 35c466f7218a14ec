package idgen_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"seckill/service/idgen"
	"seckill/service/idgen/idgentest"
)

func TestSnowflake_BurstIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.close()
		before := time.Now()
		p := r.take(100_000)
		if took := time.Since(before); took != 0 {
			t.Errorf("100,000 ids took %s of the clock", took)
		}
		p = r.take(900_000)
		ahead, took := p.Time.Sub(r.clock.Wall()), time.Since(before)
		if ahead > 101*time.Millisecond {
			t.Errorf("%s ahead of the clock", ahead)
		}
		if want := 1_000_000/4096 - 101; took < time.Duration(want)*time.Millisecond {
			t.Errorf("a million ids took %s, want at least %d ms", took, want)
		}
	})
}

// A busy generator does not look at the clock for each id, and must not lag behind it all the same.
func TestSnowflake_FollowsTheClockWhenBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		defer r.close()
		for range 5 {
			r.take(1000)
			time.Sleep(2 * time.Millisecond)
			if p, _ := r.next(); !p.Time.Equal(r.clock.Wall().Truncate(time.Millisecond)) {
				t.Errorf("id of %s, the clock shows %s", p.Time, r.clock.Wall())
			}
			r.take(1000)
			time.Sleep(time.Hour)
		}
		r.take(1000)
		r.clock.Step(-3 * time.Second)
		time.Sleep(2 * time.Millisecond)
		if r.take(1000); r.gen.Stats().Rollbacks != 1 {
			t.Errorf("%d rollbacks seen, want 1", r.gen.Stats().Rollbacks)
		}
		r.leases.Always(idgentest.Hang)
		time.Sleep(13 * time.Second)
		r.take(1000)
		time.Sleep(time.Millisecond)
		r.take(1000) // the last window is a busy one
		time.Sleep(2 * time.Second)
		if id, err := r.gen.Next(t.Context()); !errors.Is(err, idgen.ErrLeaseLost) {
			t.Errorf("Next = %d, %v after the lease, want ErrLeaseLost", id, err)
		}
		r.leases.Set(nil)
	})
}

func TestSnowflake_FillsTheSequence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, idgen.WithBurst(0))
		defer r.close()
		ids := make([]idgen.ID, 3*4096)
		if err := r.gen.NextN(t.Context(), ids); err != nil {
			t.Fatal(err)
		}
		perMS := map[time.Time]int{}
		for _, id := range ids {
			perMS[r.gen.Layout().Decode(id).Time]++
		}
		if len(perMS) != 3 || !slices.IsSorted(ids) {
			t.Errorf("ids of %d milliseconds, want 3 full ones: %v", len(perMS), perMS)
		}
	})
}

func TestSnowflake_EndOfTheLayout(t *testing.T) {
	layout := idgen.DefaultLayout()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.close()
		r.clock.Set(layout.End().Add(-2 * time.Millisecond))
		r.start()
		defer r.close()
		for range 2 {
			p := r.take(4096)
			if !p.Time.Before(layout.End()) {
				t.Errorf("id of %s, the layout ends at %s", p.Time, layout.End())
			}
			time.Sleep(time.Millisecond + time.Microsecond) // past what a timer does at the full millisecond
		}
		if id, err := r.gen.Next(t.Context()); !errors.Is(err, idgen.ErrExhausted) {
			t.Errorf("Next = %d, %v after the end, want ErrExhausted", id, err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		for _, wall := range []time.Time{layout.End(), layout.Epoch.Add(-time.Millisecond)} {
			clock := idgentest.NewClock(wall)
			_, err := idgen.NewSnowflake(t.Context(), idgen.NewStatic(0), idgen.WithClock(clock.Wall))
			if !errors.Is(err, idgen.ErrExhausted) {
				t.Errorf("start at %s: %v, want ErrExhausted", wall, err)
			}
		}
	})
}
