package idgentest

import (
	"sync/atomic"
	"time"
)

// Clock is an idgen.Clock whose time of day can be set while time itself goes on as it does for everybody. In a
// testing/synctest bubble that is the bubble's time, so tests wait for nothing; in a real process it is real time.
type Clock struct {
	start  time.Time
	offset atomic.Int64 // of the time of day from time.Now, in nanoseconds
}

// NewClock returns a clock that shows wall now.
func NewClock(wall time.Time) *Clock {
	c := &Clock{start: time.Now()}
	c.Set(wall)
	return c
}

// Set makes the clock show wall now.
func (c *Clock) Set(wall time.Time) { c.offset.Store(int64(wall.Sub(time.Now().Round(0)))) }

// Step moves the time of day by d, which may be negative.
func (c *Clock) Step(d time.Duration) { c.offset.Add(int64(d)) }

// Wall implements idgen.Clock.
func (c *Clock) Wall() time.Time { return time.Now().Round(0).Add(time.Duration(c.offset.Load())) }

// Mono implements idgen.Clock.
func (c *Clock) Mono() time.Duration { return time.Since(c.start) }

// AfterFunc implements idgen.Clock.
func (c *Clock) AfterFunc(d time.Duration, f func()) func() bool { return time.AfterFunc(d, f).Stop }
