package loadtest

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Slot is a part of a load's timeline.
type Slot struct {
	At       time.Duration `json:"at_ns"` // since the beginning of the load
	Width    time.Duration `json:"for_ns"`
	Accepted int64         `json:"accepted"`
	Refused  int64         `json:"refused"`
	Faults   int64         `json:"faults"` // unknown or failed
	Dropped  int64         `json:"dropped"`
	// Percentiles of the latencies of accepted and refused requests; zero where there was none.
	AcceptedP50 time.Duration `json:"accepted_p50_ns"`
	AcceptedP99 time.Duration `json:"accepted_p99_ns"`
	RefusedP50  time.Duration `json:"refused_p50_ns"`
	RefusedP99  time.Duration `json:"refused_p99_ns"`
}

// timeline counts answers by time. When it has too many slots, it merges pairs of them, so its memory is bounded.
type timeline struct {
	width time.Duration
	slots []slotCount
}

type slotCount struct {
	faults, dropped   int64
	accepted, refused *hdrhistogram.Histogram // nil while empty
}

// mostSlots is the number of points that a chart needs at most.
const mostSlots = 240

// slot returns the slot of a time.
func (t *timeline) slot(at time.Duration) *slotCount {
	at = max(at, 0)
	for at/t.width >= mostSlots {
		t.mergePairs()
	}
	for n := int(at / t.width); n >= len(t.slots); {
		t.slots = append(t.slots, slotCount{})
	}
	return &t.slots[at/t.width]
}

func (t *timeline) mergePairs() {
	t.width *= 2
	for i := range t.slots {
		if i%2 == 1 {
			t.slots[i/2].merge(&t.slots[i])
		} else {
			t.slots[i/2] = t.slots[i]
		}
	}
	t.slots = t.slots[:(len(t.slots)+1)/2]
}

func (s *slotCount) merge(o *slotCount) {
	s.faults += o.faults
	s.dropped += o.dropped
	s.accepted = mergeInto(s.accepted, o.accepted)
	s.refused = mergeInto(s.refused, o.refused)
}

func mergeInto(to, from *hdrhistogram.Histogram) *hdrhistogram.Histogram {
	if to == nil {
		return from
	}
	if from != nil {
		to.Merge(from)
	}
	return to
}

func (t *timeline) add(at time.Duration, class Class, us int64) {
	s := t.slot(at)
	h := &s.accepted
	switch class {
	case Accepted:
	case Refused:
		h = &s.refused
	default:
		s.faults++
		return
	}
	if *h == nil {
		*h = hdrhistogram.New(leastLatency, mostLatency, 2)
	}
	_ = (*h).RecordValue(us) // cannot be out of range
}

func (t *timeline) drop(at time.Duration) { t.slot(at).dropped++ }

// report returns the slots until end; the last one may be shorter than the others.
func (t *timeline) report(end time.Duration) []Slot {
	slots := make([]Slot, len(t.slots))
	for i := range t.slots {
		s := &t.slots[i]
		slots[i] = Slot{At: time.Duration(i) * t.width, Width: t.width, Faults: s.faults, Dropped: s.dropped}
		if h := s.accepted; h != nil {
			slots[i].Accepted, slots[i].AcceptedP50, slots[i].AcceptedP99 = h.TotalCount(), quantile(h, 50), quantile(h, 99)
		}
		if h := s.refused; h != nil {
			slots[i].Refused, slots[i].RefusedP50, slots[i].RefusedP99 = h.TotalCount(), quantile(h, 50), quantile(h, 99)
		}
	}
	if n := len(slots); n > 0 {
		if rest := end - slots[n-1].At; rest > 0 {
			slots[n-1].Width = min(slots[n-1].Width, rest)
		}
	}
	return slots
}

func quantile(h *hdrhistogram.Histogram, q float64) time.Duration {
	return time.Duration(h.ValueAtQuantile(q)) * time.Microsecond
}
