package redislock

import (
	"sync"
	"time"
)

// timers are used again: each exchange needs one, and nearly none of them fires.
var timers = sync.Pool{New: func() any { return time.NewTimer(time.Hour) }}

// startTimer returns a timer that fires after d. Its user calls stopTimer, once, and does not touch it afterwards.
func startTimer(d time.Duration) *time.Timer {
	t := timers.Get().(*time.Timer)
	t.Reset(d)
	return t
}

func stopTimer(t *time.Timer) {
	t.Stop() // since Go 1.23 there is no stale value in the channel afterwards
	timers.Put(t)
}
