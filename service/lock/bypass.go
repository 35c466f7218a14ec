package lock

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"
)

// BypassOptions tune a Bypass. Zero selects the default of a field.
type BypassOptions struct {
	// Timeout bounds the backend's answer to an Acquire without WithTimeout. Default 250 ms.
	Timeout time.Duration
	// Failures in a row open the breaker. Default 3.
	Failures int
	// Pause is how long an open breaker keeps calls from the backend before one call probes it. Default 1 s.
	Pause time.Duration
	// Observer gets BreakerChanged. Default: NoObserver.
	Observer Observer
}

// Bypass returns a Locker that grants without a lock while inner is unavailable. It is for callers whose correctness does
// not depend on the lock. When an Acquire ends with ErrUnavailable, the caller gets a lease for which IsBypassed is true.
// After a few of them in a row the breaker opens: calls are granted without asking inner, so that an absent backend costs
// them nothing. Now and then one call probes inner, and its success closes the breaker.
// Other errors, such as ErrHeld, are returned. Closing the Locker closes inner.
func Bypass(inner Locker, opts BypassOptions) Locker {
	opts.Timeout = cmp.Or(opts.Timeout, 250*time.Millisecond)
	opts.Failures = cmp.Or(opts.Failures, 3)
	opts.Pause = cmp.Or(opts.Pause, time.Second)
	if opts.Observer == nil {
		opts.Observer = NoObserver{}
	}
	return &bypass{inner: inner, breaker: breaker{opts: opts}}
}

type bypass struct {
	inner   Locker
	breaker breaker
}

func (b *bypass) Acquire(ctx context.Context, key string, opts ...Option) (Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !b.breaker.allow() {
		return &unlocked{ctx: ctx, bypassed: true}, nil
	}
	opts = append([]Option{WithTimeout(b.breaker.opts.Timeout)}, opts...) // the caller's timeout comes later and wins
	lease, err := b.inner.Acquire(ctx, key, opts...)
	switch {
	case errors.Is(err, ErrUnavailable):
		b.breaker.failed(err)
		return &unlocked{ctx: ctx, bypassed: true}, nil
	case err == nil, errors.Is(err, ErrHeld), errors.Is(err, ErrLost):
		b.breaker.answered()
	}
	return lease, err
}

func (b *bypass) Close() error { return b.inner.Close() }

// IsBypassed reports whether lease is without a lock, because the backend was unavailable.
func IsBypassed(lease Lease) bool {
	if observed, ok := lease.(*observedLease); ok {
		lease = observed.Lease
	}
	u, ok := lease.(*unlocked)
	return ok && u.bypassed
}

// breaker opens after some failures in a row, and lets one probe through after each pause.
type breaker struct {
	opts BypassOptions

	mu       sync.Mutex
	failures int
	retry    time.Time // while open: when the next probe is allowed
}

// allow reports whether the caller may ask the backend.
func (b *breaker) allow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < b.opts.Failures {
		return true
	}
	now := time.Now()
	if now.Before(b.retry) {
		return false
	}
	b.retry = now.Add(max(b.opts.Pause, b.opts.Timeout)) // a probe without an answer must not keep others from probing
	return true
}

func (b *breaker) failed(cause error) {
	b.mu.Lock()
	b.failures++
	opened := b.failures == b.opts.Failures
	if b.failures >= b.opts.Failures {
		b.retry = time.Now().Add(b.opts.Pause)
	}
	b.mu.Unlock()
	if opened {
		b.opts.Observer.BreakerChanged(true, cause)
	}
}

func (b *breaker) answered() {
	b.mu.Lock()
	closed := b.failures >= b.opts.Failures
	b.failures = 0
	b.mu.Unlock()
	if closed {
		b.opts.Observer.BreakerChanged(false, nil)
	}
}
