package outbox

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// Pause says how long to leave a broker alone that is away: First, then twice as long each time up to Longest. Each
// pause is cut by up to half at random, so that the clients of a broker that comes back do not arrive in lockstep.
type Pause struct {
	First   time.Duration // default 250 ms
	Longest time.Duration // default 5 s
}

func (p *Pause) setDefaults() {
	orDefault(&p.First, 250*time.Millisecond)
	orDefault(&p.Longest, 5*time.Second)
}

// After is the pause that follows a number of failures in a row, from 1.
func (p Pause) After(failures int) time.Duration {
	p.setDefaults()
	d := doubled(p.First, failures-1, p.Longest)
	return d - rand.N(d/2+1)
}

// Wait waits for as long as After says. It returns false if ctx ended. Brokers
// connect again by it.
func (p Pause) Wait(ctx context.Context, failures int) bool {
	timer := time.NewTimer(p.After(failures))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// probeSize is how many events are risked to find out whether the broker is back.
const probeSize = 10

// breaker keeps a relay from claiming while the broker is away, so that the rows stay due for whoever reaches it.
type breaker struct {
	pause   Pause
	changed func(pause time.Duration) // 0: the broker is back

	mu       sync.Mutex
	failures int       // in a row
	until    time.Time // of the present pause
}

// ready waits for the end of a pause. probe tells that the broker was away when it was last asked; ok is false if ctx
// ended.
func (b *breaker) ready(ctx context.Context) (probe, ok bool) {
	for {
		b.mu.Lock()
		wait := time.Until(b.until)
		probe = b.failures > 0
		b.mu.Unlock()
		if ctx.Err() != nil || wait <= 0 {
			return probe, ctx.Err() == nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}

// learn takes the outcome of a batch. A broker that confirmed anything is there. Batches that were in flight together
// when it went away count as one failure.
func (b *breaker) learn(o Outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case o.Away == 0 || o.Sent > 0:
		if b.failures > 0 {
			b.failures, b.until = 0, time.Time{}
			b.changed(0)
		}
	case time.Until(b.until) <= 0:
		b.failures++
		d := b.pause.After(b.failures)
		b.until = time.Now().Add(d)
		b.changed(d)
	}
}
