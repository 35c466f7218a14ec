package board

// speed is how fast answers were given of late.
type speed struct {
	readings [slots + 1]reading // reading n is at n % len
	next     int
}

// reading is what the histograms had counted at a moment.
type reading struct {
	at                int64
	accepted, refused counted
}

// Percentiles are over the last slots of slotTime each.
const (
	slots    = 10
	slotTime = 200 // milliseconds
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
	oldest := &s.readings[max(0, s.next-slots)%len(s.readings)] // all zero at the beginning, which is right then
	percentiles(&oldest.accepted, &now.accepted, acceptedShares, v[p50:p99+1])
	percentiles(&oldest.refused, &now.refused, refusedShares, v[refusedP99:refusedP99+1])
	if last := &s.readings[max(0, s.next-1)%len(s.readings)]; s.next == 0 || at-last.at >= slotTime {
		s.readings[s.next%len(s.readings)] = now
		s.next++
	}
}

// notice puts on the line of events what counters alone tell.
func (s *speed) notice(m *Meter, before, now *values) {
	for f, kind := range map[figure]Kind{lockLost: LocksLost, busy: QueueFull, unknown: OutcomesUnknown} {
		if now[f] > before[f] {
			m.event(kind, "", 0)
		}
	}
}
