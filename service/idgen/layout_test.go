package idgen_test

import (
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"seckill/service/idgen"
)

func TestLayout_AnotherInTheSameStoreIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.close()
		for _, change := range []func(*idgen.Layout){
			func(l *idgen.Layout) { l.Epoch = l.Epoch.Add(time.Millisecond) },
			func(l *idgen.Layout) { l.WorkerBits, l.DataCenterBits = 4, 6 },
		} {
			l := idgen.DefaultLayout()
			change(&l)
			if _, err := idgen.NewSnowflake(t.Context(), r.leases, idgen.WithLayout(l), atNoon()); !errors.Is(err, idgen.ErrLayout) {
				t.Errorf("start with %s: %v, want ErrLayout", l, err)
			}
		}
	})
}

func TestLayout_RefusesWhatDoesNotFit(t *testing.T) {
	l := idgen.DefaultLayout()
	for _, p := range []idgen.Parts{
		{Time: l.End(), Worker: 1}, {Time: l.Epoch.Add(-1)}, {Time: l.Epoch, Worker: 32}, {Time: l.Epoch, Worker: -1},
		{Time: l.Epoch, DataCenter: 32}, {Time: l.Epoch, Sequence: 4096},
	} {
		if id, err := l.Encode(p); !errors.Is(err, idgen.ErrLayout) {
			t.Errorf("Encode(%+v) = %d, %v, want ErrLayout", p, id, err)
		}
	}
	last := idgen.Parts{Time: l.End().Add(-time.Millisecond), DataCenter: 31, Worker: 31, Sequence: 4095}
	if id, err := l.Encode(last); id != math.MaxInt64 || err != nil || l.Decode(id) != last {
		t.Errorf("Encode(%+v) = %d, %v, Decode %+v", last, id, err, l.Decode(id))
	}
	for _, change := range []func(*idgen.Layout){
		func(l *idgen.Layout) { l.TimeBits = 42 }, func(l *idgen.Layout) { l.TimeBits = 31 },
		func(l *idgen.Layout) { l.WorkerBits = 0 }, func(l *idgen.Layout) { l.SequenceBits = 0 },
		func(l *idgen.Layout) { l.DataCenterBits = -1 }, func(l *idgen.Layout) { l.Epoch = l.Epoch.Add(time.Microsecond) },
	} {
		l := idgen.DefaultLayout()
		change(&l)
		if err := l.Validate(); !errors.Is(err, idgen.ErrLayout) {
			t.Errorf("Validate(%s) = %v, want ErrLayout", l, err)
		}
	}
	for _, dc := range []int{-2, 32} {
		if _, err := idgen.NewSnowflake(t.Context(), idgen.NewStatic(0), idgen.WithDataCenter(dc), atNoon()); !errors.Is(err, idgen.ErrLayout) {
			t.Errorf("data centre %d: %v, want ErrLayout", dc, err)
		}
	}
}

func FuzzLayout(f *testing.F) {
	f.Add(int64(1<<62), 5, 5, 12)
	f.Add(int64(4096), 0, 1, 1)
	f.Fuzz(func(t *testing.T, n int64, dc, worker, seq int) {
		l := idgen.Layout{Epoch: noon, TimeBits: 41, DataCenterBits: dc, WorkerBits: worker, SequenceBits: seq}
		if l.Validate() != nil {
			return
		}
		id := idgen.ID(n & math.MaxInt64 & (1<<(41+dc+worker+seq) - 1))
		if back, err := l.Encode(l.Decode(id)); err != nil || back != id {
			t.Fatalf("%s: %d became %+v became %d, %v", l, id, l.Decode(id), back, err)
		}
	})
}
