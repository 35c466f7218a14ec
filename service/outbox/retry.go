package outbox

import (
	"math/rand/v2"
	"time"
)

// Retry says when an event is tried again whose attempt failed: after First, then after twice as long each time up to
// Longest, give or take a fifth, so that events which failed together part.
type Retry struct {
	First       time.Duration // default 1 min
	Longest     time.Duration // default 64 min
	MaxAttempts int           // the attempt that is the last; default 8, the one after the seventh pause (64 min)
}

func (r *Retry) setDefaults() {
	orDefault(&r.First, time.Minute)
	orDefault(&r.Longest, 64*time.Minute)
	orDefault(&r.MaxAttempts, 8)
}

// delay is the time between the attempt with this number, from 1, and the next.
func (r Retry) delay(attempt int) time.Duration {
	d := doubled(r.First, attempt-1, r.Longest)
	return d - d/5 + rand.N(2*d/5+1)
}

// doubled is d, doubled times times, but at most longest.
func doubled(d time.Duration, times int, longest time.Duration) time.Duration {
	for ; times > 0 && d < longest; times-- {
		d *= 2
	}
	return min(d, longest)
}
