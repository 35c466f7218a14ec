package idgen

import "time"

// Clock is the time that a generator lives by. Tests bring their own; the default is the system's.
type Clock interface {
	// Wall returns the time of day, which may step in either direction at any moment.
	Wall() time.Time
	// Mono returns the time since some fixed moment. It never goes back, and knows nothing of the time of day.
	Mono() time.Duration
	// AfterFunc calls f on a goroutine of its own once d has passed on Mono, unless stop is called before.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// after returns a channel that is closed once d has passed on c, and a function that frees the timer.
func after(c Clock, d time.Duration) (fired <-chan struct{}, stop func() bool) {
	ch := make(chan struct{})
	return ch, c.AfterFunc(d, func() { close(ch) })
}

// systemClock is the Clock of the machine. Its zero Mono is the moment that it was made.
type systemClock struct{ start time.Time }

// SystemClock returns the machine's clock.
func SystemClock() Clock { return systemClock{time.Now()} }

func (c systemClock) Wall() time.Time     { return time.Now() }
func (c systemClock) Mono() time.Duration { return time.Since(c.start) }

func (c systemClock) AfterFunc(d time.Duration, f func()) func() bool {
	return time.AfterFunc(d, f).Stop
}
