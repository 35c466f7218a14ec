package board

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/service"
)

// A percentile is never too low, and at most a tenth too high.
func TestPercentile(t *testing.T) {
	for range 100 {
		m := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "seckill_order_duration_seconds", NativeHistogramBucketFactor: 1.1})
		registry := prometheus.NewRegistry()
		registry.MustRegister(m)
		read := func() buckets {
			families, err := registry.Gather()
			if err != nil {
				t.Fatal(err)
			}
			b := buckets{}
			b.add(families[0].GetMetric()[0].GetHistogram())
			return b
		}
		for range rand.IntN(50) {
			m.Observe(time.Duration(rand.Int64N(1e10)).Seconds())
		}
		before := read()
		var times []float64
		for range 1 + rand.IntN(300) {
			took := math.Exp(rand.Float64()*24) * 1e-9 // up to 26 s
			m.Observe(took)
			times = append(times, took)
		}
		after := read()
		slices.Sort(times)
		for _, share := range []float64{0.5, 0.9, 0.99} {
			exact := times[int(math.Ceil(share*float64(len(times))))-1] * 1e6
			if got := float64(after.percentile(before, share)); got < exact || got > math.Ceil(exact*1.1) {
				t.Fatalf("the %g percentile is %g µs, got %g", 100*share, exact, got)
			}
		}
		if got := after.percentile(after, 0.5); got != -1 {
			t.Fatalf("of nothing: %d", got)
		}
	}
}

// Every outcome of a request is counted in exactly one figure.
func TestFigures_EveryAnswerIsCounted(t *testing.T) {
	m := newMetrics()
	outcomes := []service.Code{
		service.CodePlaced, service.CodeReplayed, service.CodeSoldOut, service.CodeAlreadyOrdered, service.CodeInProgress,
		service.CodeNotStarted, service.CodeEnded, service.CodeBusy, service.CodeUnavailable, service.CodeUnknown,
		service.CodeInternal, service.CodeNotFound, service.CodeKeyReused, service.CodeInvalid,
	}
	for _, outcome := range outcomes {
		m.answered(string(outcome), time.Millisecond)
	}
	f := figuresOf(t, m)
	if f.answered() != int64(len(outcomes)) {
		t.Errorf("%d answers of %d are counted", f.answered(), len(outcomes))
	}
	if f["placed"] != 1 || f["outside"] != 2 || f["unknown"] != 1 || f["internal"] != 1 || f["mistaken"] != 3 {
		t.Errorf("%v", f)
	}
	for _, name := range answers {
		if counters[name] == nil {
			t.Errorf("no metric counts %s", name)
		}
	}
}

func figuresOf(t *testing.T, m *fakeMetrics) figures {
	t.Helper()
	families, err := m.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return readFigures(families)
}

// What metrics say becomes figures and events.
func TestBoard_FiguresAndEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoard(&fakeShop{}, nil)
		m := metricsOf(b)
		step := func(change func()) {
			change()
			b.update()
			time.Sleep(10 * time.Second)
		}
		step(func() {
			m.set("seckill_commit_waiting_orders", 3)
			for _, outcome := range []string{"granted", "held", "bypassed", "failed", "cancelled"} {
				m.count("seckill_locks_total", outcome, 1)
			}
			m.count("seckill_outbox_events_total", "sent", 5)
			m.count("seckill_outbox_events_total", "unknown", 1)
			m.count("seckill_outbox_events_total", "away", 2)
		})
		step(func() { m.set("seckill_breaker_open", 1, "lock") })
		step(func() { m.count("seckill_locks_total", "lost", 1) })
		step(func() { m.count("seckill_outbox_events_total", "refused", 2) })
		for range 2 {
			step(func() { m.set("seckill_breaker_open", 1, "broker") })
			step(func() { m.set("seckill_breaker_open", 0, "broker") })
		}
		step(func() { m.set("seckill_ids_worker", 9); m.count("seckill_ids_events_total", "lease-acquired", 1) })
		step(func() { m.set("seckill_ids_store_away", 1) })
		step(func() { m.set("seckill_ids_store_away", 0) })
		step(func() { m.count("seckill_ids_events_total", "lease-lost", 1) })
		step(func() { m.count("seckill_ids_events_total", "worker-switched", 1) })
		step(func() {
			m.set("seckill_ids_clock_step_seconds", 1)
			m.count("seckill_ids_events_total", "clock-ahead", 1)
		})
		step(func() { m.answered("busy", 0); m.answered("outcome-unknown", 0) })
		for name, want := range map[string]int64{
			"queue": 3, "lock_granted": 1, "lock_held": 1, "lock_bypassed": 1, "lock_lost": 1, "lock_failed": 2,
			"sent": 5, "unsent": 3, "given_up": 2, "lock_open": 1, "broker_away": 0, "ids_away": 0, "worker": 9, "ids_left": -1,
		} {
			if b.figures[name] != want {
				t.Errorf("%s is %d, want %d", name, b.figures[name], want)
			}
		}
		var kinds []string
		for _, e := range b.events.between(0, math.MaxInt64) {
			kinds = append(kinds, strings.TrimSpace(string(e.Kind)+" "+e.What))
		}
		want := []string{"started me:1", "lock-breaker-opened", "locks-lost", "event-given-up 2", "relay-paused", "relay-resumed",
			"relay-paused", "relay-resumed", "lease-acquired 9", "ids-away", "ids-back", "lease-lost", "worker-switched 9",
			"clock-back 1000", "queue-full", "outcomes-unknown"}
		if !slices.Equal(kinds, want) {
			t.Errorf("the timeline says %q", kinds)
		}
	})
}

// The timeline keeps a bounded number of events, and a flood of one kind does not push out the others.
func TestTimeline_IsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		line := timeline{began: time.Now()}
		line.add(Started, "")
		for range 10_000 {
			line.addRepeated(LocksLost, "")
			time.Sleep(time.Millisecond)
		}
		if events := line.between(0, math.MaxInt64); len(events) != 6 || events[0].Kind != Started {
			t.Errorf("a flood of ten seconds left %d events", len(events))
		}
		for range 1000 {
			line.add(LocksLost, "")
		}
		events := line.between(0, math.MaxInt64)
		last := events[len(events)-1].N
		if len(events) != keptEvents || last != 1006 {
			t.Errorf("%d events are kept, the last is %d", len(events), last)
		}
		if rest := line.between(last-3, last-1); len(rest) != 2 || rest[0].N != last-2 {
			t.Errorf("two of the last three are %v", rest)
		}
	})
}

func TestBoard_SnapshotIsJSON(t *testing.T) {
	b := newBoard(&fakeShop{}, func(c *Config) { c.Instance = "\"</script>\n"; c.Registry = nil })
	b.Mark("data: \n\nevent: x")
	b.update()
	var document map[string]any
	if err := json.Unmarshal(b.Snapshot(), &document); err != nil || document["instance"] != "\"</script>\n" {
		t.Errorf("%v %s", err, b.Snapshot())
	}
	if strings.ContainsAny(string(b.Snapshot()), "\n\r") {
		t.Error("a line break would end the event")
	}
}

func BenchmarkUpdate(b *testing.B) {
	board := newBoard(&fakeShop{}, nil)
	for b.Loop() {
		metricsOf(board).answered("placed", 3*time.Millisecond)
		board.update()
	}
}
