package board

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"seckill/service"
	"seckill/service/idgen"
	"seckill/service/lock"
	"seckill/service/outbox"
)

// A percentile is never told too low, and at most an eighth too high.
func TestPercentiles(t *testing.T) {
	for range 200 {
		var h histogram
		var before, after counted
		for range rand.IntN(50) {
			h.add(time.Duration(rand.Int64N(1e10)))
		}
		h.read(&before)
		var times []int64
		for range 1 + rand.IntN(300) {
			took := time.Duration(math.Exp(rand.Float64()*24)) * time.Nanosecond // up to 26 s
			h.add(took)
			times = append(times, took.Microseconds())
		}
		h.read(&after)
		slices.Sort(times)
		got, shares := make([]int64, 3), []float64{0.5, 0.9, 0.99}
		percentiles(&before, &after, shares, got)
		for i, share := range shares {
			exact := times[int(math.Ceil(share*float64(len(times))))-1]
			if got[i] < exact || got[i] > exact+exact/8 {
				t.Fatalf("the %g percentile is %d µs, told as %d", 100*share, exact, got[i])
			}
		}
		percentiles(&after, &after, shares, got)
		if !slices.Equal(got, []int64{-1, -1, -1}) {
			t.Fatalf("of nothing: %d", got)
		}
	}
	if bucketOf(-time.Second) != 0 || bucketOf(time.Hour) != buckets-1 {
		t.Error("what is out of range has no bucket")
	}
}

func TestEveryAnswerIsCounted(t *testing.T) {
	m := NewMeter()
	codes := []service.Code{"", service.CodeReplayed, service.CodeSoldOut, service.CodeAlreadyOrdered, service.CodeInProgress,
		service.CodeNotStarted, service.CodeEnded, service.CodeBusy, service.CodeUnavailable, service.CodeUnknown,
		service.CodeInternal, service.CodeNotFound, service.CodeKeyReused, service.CodeInvalid, "of tomorrow"}
	for _, code := range codes {
		m.Answered(code, time.Millisecond)
	}
	if n := m.answers(); n != int64(len(codes)) {
		t.Errorf("%d answers of %d are counted", n, len(codes))
	}
	for f := range figures {
		if figureNames[f] == "" {
			t.Errorf("figure %d has no name", f)
		}
	}
	var v values
	m.read(&v)
	if v[placed] != 1 || v[outside] != 2 || v[unknown] != 2 || v[mistaken] != 4 {
		t.Errorf("%v", v)
	}
}

// What the parts report comes out as figures and events.
func TestReports(t *testing.T) {
	m := NewMeter()
	m.Committed(7, time.Millisecond)
	m.Waiting(3)
	m.Expired(2)
	for _, outcome := range []lock.Outcome{lock.Granted, lock.Held, lock.Bypassed, lock.Lost, lock.Failed, lock.Cancelled} {
		m.Locked(outcome, time.Millisecond)
	}
	m.LockBreaker(true)
	m.LockBreaker(true)
	m.Published(outbox.Outcome{Sent: 5, Retry: 1, Unavailable: 2, GivenUp: 1}, time.Second)
	m.GaveUp(outbox.Event{Type: "order.paid"}, nil)
	m.Paused(time.Second)
	m.Paused(0)
	m.Paused(time.Second)
	m.Paused(0)
	for _, kind := range []idgen.EventKind{idgen.LeaseAcquired, idgen.LeaseFailed, idgen.LeaseFailed, idgen.LeaseRenewed, idgen.LeaseLost, idgen.WorkerSwitched, idgen.ClockAhead} {
		m.IDs(idgen.Event{Kind: kind, Worker: 9, Step: time.Second})
	}
	var v values
	m.read(&v)
	for f, want := range map[figure]int64{
		commits: 1, committed: 7, queue: 3, expired: 2, lockGranted: 1, lockHeld: 1, lockBypassed: 1, lockLost: 1, lockFailed: 2,
		sent: 5, unsent: 3, givenUp: 1, lockOpen: 1, brokerAway: 0, idsAway: 0,
	} {
		if v[f] != want {
			t.Errorf("%s is %d, want %d", figureNames[f], v[f], want)
		}
	}
	events, _ := m.line.after(0)
	var kinds []string
	for _, e := range events {
		kinds = append(kinds, strings.TrimSpace(string(e.Kind)+" "+e.What))
	}
	want := []string{"lock-breaker-opened", "event-given-up order.paid", "relay-paused", "relay-resumed", "relay-paused", "relay-resumed", "lease-acquired 9",
		"ids-away", "ids-back", "lease-lost", "worker-switched 9", "clock-back 1s"}
	if !slices.Equal(kinds, want) {
		t.Errorf("the line says %q", kinds)
	}
}

// The line keeps so many events, and no flood of one kind pushes out the others.
func TestTimelineIsBounded(t *testing.T) {
	m := NewMeter()
	start := time.Now()
	m.line.add(start, Started, "", 0)
	for i := range 10_000 {
		m.line.repeat(start.Add(time.Duration(i)*time.Millisecond), LocksLost, "")
	}
	if events, last := m.line.after(0); len(events) != 6 || last != 6 || events[0].Kind != Started {
		t.Errorf("a flood of ten seconds left %d events", len(events))
	}
	for i := range 1000 {
		m.line.add(start.Add(time.Duration(i)*time.Minute), LocksLost, "", 0)
	}
	events, last := m.line.after(0)
	if len(events) != keptEvents || events[len(events)-1].N != last {
		t.Errorf("%d events are kept, the last is %d of %d", len(events), events[len(events)-1].N, last)
	}
	if rest, _ := m.line.after(last - 3); len(rest) != 3 || rest[0].N != last-2 {
		t.Errorf("the last three are %v", rest)
	}
}

func TestSnapshotIsJSON(t *testing.T) {
	b := newBoard(&fakeShop{}, func(c *Config) { c.Instance = "\"</script>\n"; c.Registry = nil })
	b.Mark("data: \n\nevent: x")
	b.tick()
	var document map[string]any
	if err := json.Unmarshal(b.Snapshot(), &document); err != nil || document["instance"] != "\"</script>\n" {
		t.Errorf("%v %s", err, b.Snapshot())
	}
	if strings.ContainsAny(string(b.Snapshot()), "\n\r") {
		t.Error("a line break would end the event")
	}
}

func TestAnswersCostNoAllocation(t *testing.T) {
	m := NewMeter()
	if n := testing.AllocsPerRun(1000, func() { m.Answered(service.CodeSoldOut, time.Millisecond) }); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

// An answer is two atomic additions, also with all processors at it.
func BenchmarkAnswered(b *testing.B) {
	m := NewMeter()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			m.Answered("", 3*time.Millisecond)
		}
	})
}

func BenchmarkTick(b *testing.B) {
	board := newBoard(&fakeShop{}, nil)
	for b.Loop() {
		board.cfg.Meter.Answered("", 3*time.Millisecond)
		board.tick()
	}
}
