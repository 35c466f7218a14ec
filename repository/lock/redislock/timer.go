package redislock

import (
	"sync"
	"time"
)

// timer is a time.Timer that is used again: each exchange needs one, and nearly none of them fires.
type timer struct{ *time.Timer }

var timers = sync.Pool{New: func() any { return timer{time.NewTimer(time.Hour)} }}

// startTimer returns a timer that fires after d. Its user calls stop, once, and does not touch it afterwards.
func startTimer(d time.Duration) timer {
	t := timers.Get().(timer)
	t.Reset(d)
	return t
}

func (t timer) stop() {
	t.Stop() // since Go 1.23 there is no stale value in the channel afterwards
	timers.Put(t)
}
