package idgen

import (
	"fmt"
	"time"
)

// Clock returns the time of day, which may step in either direction at any moment. Tests set their own.
type Clock func() time.Time

// now returns what the clock shows, in milliseconds of the layout.
func (s *Snowflake) now() int64 { return s.sinceEpoch(s.clock()) }

func (s *Snowflake) sinceEpoch(t time.Time) int64 { return t.UnixMilli() - s.layout.Epoch.UnixMilli() }

// mono returns the time since the start. It never goes back, and does not depend on the time of day.
func (s *Snowflake) mono() time.Duration { return time.Since(s.start) }

// readClock compares the clock with its last reading. When it went back by up to the tolerance, calls wait for it: the first
// defence. When it went back by more, ids continue from the highest time used: the second defence. s.mu is locked.
func (s *Snowflake) readClock(now int64) {
	back := s.lastClock - now
	s.holdUntil = max(s.holdUntil, s.lastClock)
	s.lastClock = now
	if back > 0 {
		s.rollbacks.Add(1)
	}
	if s.holdUntil-now <= s.tolerance.Milliseconds() {
		if back > 0 {
			s.events = append(s.events, Event{Kind: ClockWait, Step: millis(back)})
		}
		return
	}
	s.holdUntil = now
	for i := range s.workers {
		if w := &s.workers[i]; s.milli(w.last) > now {
			w.recovering = true
		}
	}
	s.events = append(s.events, Event{Kind: ClockAhead, Step: millis(back)})
}

// waitForClock returns how long calls must wait for a clock that went back by a little. They need not wait if no id has
// reached the time that it shows. s.mu is locked.
func (s *Snowflake) waitForClock(now int64) time.Duration {
	if s.holdUntil <= now || s.milli(s.workers[s.active].last) <= now {
		return 0
	}
	return millis(s.holdUntil - now)
}

// chooseWorker returns the ticks of the worker to use. When the active worker is too far ahead of a clock that went back,
// the backup worker takes over: the third defence. s.mu is locked.
func (s *Snowflake) chooseWorker(now int64) (tickRange, error) {
	w, backup := &s.workers[s.active], &s.workers[1-s.active]
	var ticks tickRange
	if now <= s.layout.maxMillis() {
		ticks = s.usableTicks(w, now)
	}
	if max(now, s.milli(ticks.first)) > s.layout.maxMillis() {
		return ticks, fmt.Errorf("%w: the layout's time ends at %s", ErrExhausted, s.layout.End())
	}
	if ticks.wait == 0 || !w.recovering {
		return ticks, nil
	}
	other := s.usableTicks(backup, now)
	if other.wait > 0 {
		ticks.wait = min(ticks.wait, other.wait)
		return ticks, nil
	}
	s.active = 1 - s.active
	s.events = append(s.events, Event{Kind: WorkerSwitched, Step: millis(ticks.ahead), Worker: backup.number})
	return other, nil
}
