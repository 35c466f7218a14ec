package board

// speed is how fast answers were given of late.
type speed struct {
	readings [10]reading // reading n is at n % len
	next     int
}

// reading is what the histograms had counted at a moment.
type reading struct {
	at                int64
	accepted, refused counted
}

// Percentiles are over this time, and as much longer as readings are apart. In milliseconds.
const (
	speedTime = 2000
	readEvery = 250
)

var (
	acceptedShares = []float64{0.5, 0.9, 0.99}
	refusedShares  = []float64{0.99}
)

// measure writes the percentiles of the last two seconds.
func (s *speed) measure(m *Meter, at int64, v *values) {
	var now reading
	now.at = at
	m.accepted.read(&now.accepted)
	m.refused.read(&now.refused)
	before := s.before(at - speedTime)
	percentiles(&before.accepted, &now.accepted, acceptedShares, v[p50:p99+1])
	percentiles(&before.refused, &now.refused, refusedShares, v[refusedP99:refusedP99+1])
	if s.next == 0 || at-s.reading(s.next-1).at >= readEvery {
		*s.reading(s.next) = now
		s.next++
	}
}

func (s *speed) reading(n int) *reading { return &s.readings[n%len(s.readings)] }

// before returns the latest reading of the moment or earlier, or else the first that there is. Before the first, it is
// zero, as all counts were then.
func (s *speed) before(at int64) *reading {
	n := s.next - 1
	for first := max(0, s.next-len(s.readings)); n > first && s.reading(n).at > at; n-- {
	}
	return s.reading(max(0, n))
}

// noticed are the counters whose growth is an event.
var noticed = [...]struct {
	figure figure
	kind   Kind
}{{lockLost, LocksLost}, {busy, QueueFull}, {unknown, OutcomesUnknown}}

// notice puts on the line of events what counters alone tell.
func notice(m *Meter, before, now *values) {
	for _, n := range noticed {
		if now[n.figure] > before[n.figure] {
			m.repeated(n.kind, "")
		}
	}
}
