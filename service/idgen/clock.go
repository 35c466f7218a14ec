package idgen

import "time"

// Clock is the time that a generator lives by. Tests bring their own; the default is the system's.
type Clock interface {
	// Wall returns the time of day, which may step in either direction at any moment.
	Wall() time.Time
	// Mono returns the time since some fixed moment. It never goes back, and knows nothing of the time of day.
	Mono() time.Duration
	// After returns a channel that receives once d has passed on Mono, and a function that frees the timer.
	After(d time.Duration) (fired <-chan time.Time, stop func())
}

// systemClock is the Clock of the machine. Its zero Mono is the moment that it was made.
type systemClock struct{ start time.Time }

// SystemClock returns the machine's clock.
func SystemClock() Clock { return systemClock{time.Now()} }

func (c systemClock) Wall() time.Time     { return time.Now() }
func (c systemClock) Mono() time.Duration { return time.Since(c.start) }

func (c systemClock) After(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTimer(d)
	return t.C, func() { t.Stop() }
}
