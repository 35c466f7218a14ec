package idgen

import "time"

// stepper decides how many ids to load at a time, by how long those before lasted. It is not safe for concurrent use.
type stepper struct {
	step     int64
	min, max int64
	target   time.Duration
	loadedAt time.Duration // on Mono: when the last load began
	loaded   bool
}

// next returns the number to load now. The time since the load before is what its ids lasted for.
func (s *stepper) next(now time.Duration) int64 {
	lasted := now - s.loadedAt
	switch {
	case !s.loaded:
	case lasted < s.target:
		s.step = min(2*s.step, s.max)
	case lasted > 2*s.target:
		s.step = max(s.step/2, s.min)
	}
	s.loadedAt, s.loaded = now, true
	return s.step
}

// minimum sets the lower bound of the step. A raised one counts at once, not only when the step has grown to it.
func (s *stepper) minimum(least int64) {
	s.min = least
	s.step = max(s.step, least)
}
