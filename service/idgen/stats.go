package idgen

import "time"

// SnowflakeStats is a look at a Snowflake at one moment, for gauges and the admin page.
type SnowflakeStats struct {
	Worker    int           // worker in use, counted over all data centres
	Ahead     time.Duration // how far the time in the last id is ahead of the clock; zero when it is not
	Reserve   time.Duration // how far the stored ceiling is above the time in the last id
	LeaseLeft time.Duration // time for which ids can be issued without the lease being renewed; zero when it is lost
	Rollbacks int64         // number of times that the clock was seen to go back
	Waiting   int64         // number of calls that wait for the clock or the store
}

// Stats does not block on anything but other calls' bookkeeping.
func (s *Snowflake) Stats() SnowflakeStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.streams[s.active]
	last := st.last
	if w := s.win.Load(); w.size > 0 {
		last = max(last, w.base+w.taken()-1)
	}
	lastMS := last >> s.pace.seqBits
	return SnowflakeStats{
		Worker:    st.machine,
		Ahead:     max(0, millis(lastMS-s.now())),
		Reserve:   max(0, millis(st.ceiling-lastMS)),
		LeaseLeft: max(0, s.deadline-s.clock.Mono()),
		Rollbacks: s.rollbacks.Load(),
		Waiting:   s.waiting.Load(),
	}
}

// Layout returns the layout that takes this generator's ids apart.
func (s *Snowflake) Layout() Layout { return s.layout }

// SegmentStats is a look at a Segment at one moment, for gauges and the admin page.
type SegmentStats struct {
	Remaining int64         // ids at hand, in both buffers
	Step      int64         // ids that the next load asks for, if demand stays as it is
	Waiting   int64         // number of calls that wait for a load
	Waited    int64         // number of times that a call has had to wait for one
	Loads     int64         // number of loads that succeeded
	Failures  int64         // number of requests to the store that failed
	LastLoad  time.Duration // how long the last request to the store took
}

// Stats does not block on anything but other calls' bookkeeping.
func (s *Segment) Stats() SegmentStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	cur := s.cur.Load()
	stats.Remaining = cur.size - cur.taken()
	if s.next != nil {
		stats.Remaining += s.next.size
	}
	stats.Step, stats.Waiting, stats.Waited = s.step.step, s.waiting.Load(), s.waited.Load()
	return stats
}
