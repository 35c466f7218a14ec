package outbox

import (
	"cmp"
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// Backoff computes the pauses between attempts to reach a server: First, then twice as long each time, up to Longest.
// Each pause is shortened by up to half at random, so that clients that lost a server at the same moment do not return
// at the same moment.
type Backoff struct {
	First   time.Duration // default 250 ms
	Longest time.Duration // default 5 s
}

// After returns the pause after the given number of consecutive failures, from 1.
func (b Backoff) After(failures int) time.Duration {
	d := doubled(cmp.Or(b.First, 250*time.Millisecond), failures-1, cmp.Or(b.Longest, 5*time.Second))
	return d - rand.N(d/2+1)
}

// Retry calls attempt until it succeeds or ctx ends, and failed after each failure. It reports whether an attempt succeeded.
// An attempt that lasted longer than a minute was connected, so the pauses start again with the first.
func (b Backoff) Retry(ctx context.Context, attempt func(context.Context) error, failed func(error)) bool {
	for failures := 1; ctx.Err() == nil; failures++ {
		start := time.Now()
		err := attempt(ctx)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			break
		}
		failed(err)
		if time.Since(start) > time.Minute {
			failures = 1
		}
		sleep(ctx, b.After(failures))
	}
	return false
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d): // an unused timer is garbage collected
	case <-ctx.Done():
	}
}

// maxAttempts is the number of attempts after which an event is given up.
const maxAttempts = 8

// retryDelay is the time between a failed attempt, numbered from 1, and the next: 1, 2, 4 … 64 minutes, plus or minus a
// fifth, so that events that failed together are not all tried together again.
func retryDelay(attempt int) time.Duration {
	d := doubled(time.Minute, attempt-1, 64*time.Minute)
	return d - d/5 + rand.N(2*d/5+1)
}

// doubled returns d doubled the given number of times, but at most longest.
func doubled(d time.Duration, times int, longest time.Duration) time.Duration {
	for ; times > 0 && d < longest; times-- {
		d *= 2
	}
	return min(d, longest)
}

// breaker is a circuit breaker: it stops a relay from claiming events while the broker is unavailable, so that relays
// that can reach it find the rows due.
type breaker struct {
	onChange func(pause time.Duration) // 0: the broker is available again

	mu       sync.Mutex
	failures int       // consecutive
	until    time.Time // end of the current pause
}

// wait waits for the end of a pause. probe reports whether the last batch found the broker unavailable; ok is false
// if ctx ended.
func (b *breaker) wait(ctx context.Context) (probe, ok bool) {
	for {
		b.mu.Lock()
		pause := time.Until(b.until)
		probe = b.failures > 0
		b.mu.Unlock()
		if ctx.Err() != nil || pause <= 0 {
			return probe, ctx.Err() == nil
		}
		sleep(ctx, pause)
	}
}

// record updates the breaker with the outcome of a batch. A broker that confirmed any event is available. Batches that
// were in flight together when it failed count as one failure.
func (b *breaker) record(o Outcome) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case o.Unavailable == 0 || o.Sent > 0:
		if b.failures > 0 {
			b.failures, b.until = 0, time.Time{}
			b.onChange(0)
		}
	case time.Until(b.until) <= 0:
		b.failures++
		d := Backoff{}.After(b.failures)
		b.until = time.Now().Add(d)
		b.onChange(d)
	}
}
