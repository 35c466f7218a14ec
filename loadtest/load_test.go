package loadtest

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestLoad_ClosedModelUsesAllClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var now, most, done atomic.Int64
		seen := make([]atomic.Int64, 100)
		load := Load{Clients: 4, Arrivals: 100}
		begin := time.Now()
		err := load.Run(t.Context(), func(a Arrival) {
			most.Store(max(most.Load(), now.Add(1)))
			time.Sleep(time.Second)
			now.Add(-1)
			done.Add(1)
			seen[a.N].Add(1)
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if done.Load() != 100 || most.Load() != 4 {
			t.Errorf("%d arrivals, %d at once; want 100 and 4", done.Load(), most.Load())
		}
		if took := time.Since(begin); took != 25*time.Second {
			t.Errorf("100 arrivals of a second by 4 clients took %s", took)
		}
		for n := range seen {
			if seen[n].Load() != 1 {
				t.Errorf("arrival %d came %d times", n, seen[n].Load())
			}
		}
	})
}

func TestLoad_OpenModelKeepsRateAndDrops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var due []time.Time
		dropped := 0
		begin := time.Now()
		// Two clients of a second each can do 2 arrivals a second; 10 come.
		load := Load{Clients: 2, Rate: 10, Arrivals: 50}
		err := load.Run(t.Context(), func(a Arrival) {
			mu.Lock()
			due = append(due, a.Due)
			mu.Unlock()
			time.Sleep(990 * time.Millisecond)
		}, func(Arrival) { dropped++ })
		if err != nil {
			t.Fatal(err)
		}
		if len(due)+dropped != 50 {
			t.Errorf("%d served and %d dropped of 50", len(due), dropped)
		}
		if len(due) != 10 {
			t.Errorf("%d served; 2 clients have 5 seconds of a second each", len(due))
		}
		for _, at := range due {
			if at.Sub(begin)%(100*time.Millisecond) != 0 {
				t.Errorf("an arrival was due %s after the beginning; they are 100ms apart", at.Sub(begin))
			}
		}
	})
}

func TestLoad_Duration(t *testing.T) {
	for _, rate := range []float64{0, 10} {
		synctest.Test(t, func(t *testing.T) {
			begin, n := time.Now(), atomic.Int64{}
			load := Load{Clients: 1, Rate: rate, Duration: 3 * time.Second}
			err := load.Run(t.Context(), func(Arrival) { n.Add(1); time.Sleep(100 * time.Millisecond) }, func(Arrival) {})
			if took := time.Since(begin); err != nil || took < 2900*time.Millisecond || took > 3100*time.Millisecond {
				t.Errorf("rate %v: %v after %s", rate, err, took)
			}
			if n.Load() < 15 || n.Load() > 31 {
				t.Errorf("rate %v: %d arrivals in 3 s", rate, n.Load())
			}
		})
	}
}

func TestLoad_CancelWaitsForArrivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		var begun, done atomic.Int64
		time.AfterFunc(1500*time.Millisecond, cancel)
		load := Load{Clients: 3, Arrivals: 1000}
		if err := load.Run(ctx, func(Arrival) { begun.Add(1); time.Sleep(time.Second); done.Add(1) }, nil); err != nil {
			t.Fatal(err)
		}
		if begun.Load() != done.Load() || begun.Load() != 6 {
			t.Errorf("%d begun, %d done; want 6 of both", begun.Load(), done.Load())
		}
	})
}

func TestLoad_InvalidIsRefused(t *testing.T) {
	for _, load := range []Load{{}, {Clients: 1}, {Clients: 0, Arrivals: 1}, {Clients: 1, Arrivals: 1, Rate: -1}} {
		if err := load.Run(t.Context(), func(Arrival) { t.Error("an arrival") }, nil); err == nil {
			t.Errorf("%+v was run", load)
		}
	}
}

// A latency in the open model counts from when the arrival was due: what an arrival waits for the generator itself is
// not hidden.
func TestRecorder_LatencyFromDue(t *testing.T) {
	r := NewRecorder(nil)
	start := time.Now()
	a := Answer{Outcome: Placed, Start: start, Took: 10 * time.Millisecond}
	r.Record(OpPlace, 1, "7", "k", &a, start.Add(-time.Second))
	report := r.Report()
	if got := report.Accepted.P50; got < 1009*time.Millisecond || got > 1012*time.Millisecond {
		t.Errorf("latency %s, want 1.01s", got)
	}
}
