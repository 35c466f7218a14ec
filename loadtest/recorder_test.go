package loadtest

import (
	"context"
	"testing"
	"time"
)

func contextWithTimeout(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	t.Helper()
	return context.WithTimeout(t.Context(), d)
}

func TestTimeline_LongLoadLosesNoCounts(t *testing.T) {
	tl := timeline{width: 250 * time.Millisecond}
	const n = 10000
	for i := range n {
		at := time.Duration(i) * time.Second // two hours and three quarters
		switch i % 4 {
		case 0:
			tl.add(at, Accepted, 1000)
		case 1:
			tl.add(at, Refused, 2000)
		case 2:
			tl.add(at, Unknown, 3000)
		case 3:
			tl.drop(at)
		}
	}
	slots := tl.report(n * time.Second)
	if len(slots) > mostSlots {
		t.Errorf("%d slots", len(slots))
	}
	var sum Slot
	end := time.Duration(0)
	for _, s := range slots {
		if s.At != end {
			t.Errorf("a slot begins at %s after one that ends at %s", s.At, end)
		}
		end = s.At + s.Width
		sum.Accepted += s.Accepted
		sum.Refused += s.Refused
		sum.Faults += s.Faults
		sum.Dropped += s.Dropped
		if s.Accepted > 0 && (s.AcceptedP50 < 990*time.Microsecond || s.AcceptedP99 > 1010*time.Microsecond) {
			t.Errorf("latency %s to %s of a millisecond", s.AcceptedP50, s.AcceptedP99)
		}
	}
	if sum.Accepted != n/4 || sum.Refused != n/4 || sum.Faults != n/4 || sum.Dropped != n/4 {
		t.Errorf("sums %+v, want %d each", sum, n/4)
	}
	if end != n*time.Second {
		t.Errorf("ends at %s", end)
	}
}

func TestRecorder_Report(t *testing.T) {
	r := NewRecorder(nil)
	now := time.Now()
	for i := range 100 {
		r.Record(OpPlace, 1, "7", "k", &Answer{Outcome: Placed, Start: now, Took: time.Duration(i+1) * time.Millisecond}, now)
	}
	r.Record(OpPlace, 1, "7", "k", &Answer{Outcome: "sold-out", Start: now, Took: time.Second}, now)
	r.Record(OpPlace, 2, "7", "", &Answer{Outcome: "outcome-unknown", RequestID: "77", Start: now, Took: time.Second}, now)
	r.Record(OpPay, 1, "7", "", &Answer{Outcome: Timeout, Start: now, Took: time.Hour}, now)
	r.Drop(now)
	report := r.Report()
	if report.Requests != 103 || report.Dropped != 1 {
		t.Errorf("%d requests, %d dropped", report.Requests, report.Dropped)
	}
	if a := report.Accepted; a.Count != 100 || a.P50 < 49*time.Millisecond || a.P50 > 51*time.Millisecond || a.P99 < 98*time.Millisecond || a.Max < 99*time.Millisecond {
		t.Errorf("accepted %+v", a)
	}
	if report.CountClass(OpPlace, Unknown) != 1 || report.CountClass(OpPay, Unknown) != 1 || report.Refused.Count != 1 {
		t.Errorf("outcomes %+v", report.Outcomes)
	}
	if unknown := r.TakeUnknown(); len(unknown) != 1 || unknown[0].Key != "77" { // a payment is not settled by placing
		t.Errorf("to be settled: %+v", unknown)
	}
	if len(r.TakeUnknown()) != 0 {
		t.Error("what was taken is still there")
	}
	if sent, _ := r.Sent(); sent != 103 {
		t.Errorf("%d sent", sent)
	}
}

func BenchmarkRecorder(b *testing.B) {
	r := NewRecorder(nil)
	now := time.Now()
	a := &Answer{Outcome: Placed, Start: now, Took: time.Millisecond}
	b.ReportAllocs()
	for b.Loop() {
		r.Record(OpPlace, 1, "7", "k", a, now)
	}
}
