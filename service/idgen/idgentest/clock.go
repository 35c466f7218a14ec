package idgentest

import (
	"sync/atomic"
	"time"
)

// Clock is a clock that can be set. Otherwise it follows time.Now: in a testing/synctest bubble the time of the bubble, so
// that tests do not wait.
type Clock struct {
	offset atomic.Int64 // from time.Now, in nanoseconds
}

// NewClock returns a clock that shows wall now.
func NewClock(wall time.Time) *Clock {
	c := &Clock{}
	c.Set(wall)
	return c
}

// Set makes the clock show wall now.
func (c *Clock) Set(wall time.Time) { c.offset.Store(int64(wall.Sub(time.Now().Round(0)))) }

// Step moves the time of day by d, which may be negative.
func (c *Clock) Step(d time.Duration) { c.offset.Add(int64(d)) }

// Wall returns the time of day. It is an idgen.Clock.
func (c *Clock) Wall() time.Time { return time.Now().Round(0).Add(time.Duration(c.offset.Load())) }
