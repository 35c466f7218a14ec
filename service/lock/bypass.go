package lock

import (
	"context"
	"errors"
	"time"
)

// BypassOptions tune a Bypass. The zero value of each field stands for the default named with it.
type BypassOptions struct {
	// Timeout bounds the backend's answer to an Acquire that names none itself. Default 250 ms.
	Timeout time.Duration
	// Failures in a row that open the breaker. Default 3.
	Failures int
	// Pause is how long an open breaker leaves the backend alone before one caller probes it. Default 1 s.
	Pause time.Duration
	// Observer gets BreakerChanged. Default: NoObserver.
	Observer Observer
}

// Bypass returns a Locker that grants without a lock while inner is unavailable, for callers whose correctness does not
// depend on the lock. Each Acquire that ends with ErrUnavailable is granted by a lease for which IsBypassed is true.
// After a few of them in a row, inner is left alone for a while, so that an absent or hung backend costs most callers
// nothing; then a single caller probes it, and its success closes the breaker again.
// Other errors, ErrHeld among them, pass through. Closing it closes inner.
func Bypass(inner Locker, opts BypassOptions) Locker {
	if opts.Timeout <= 0 {
		opts.Timeout = 250 * time.Millisecond
	}
	if opts.Failures <= 0 {
		opts.Failures = 3
	}
	if opts.Pause <= 0 {
		opts.Pause = time.Second
	}
	if opts.Observer == nil {
		opts.Observer = NoObserver{}
	}
	return &bypass{
		inner:   inner,
		timeout: WithTimeout(opts.Timeout),
		breaker: breaker{limit: opts.Failures, pause: opts.Pause, probe: opts.Timeout, changed: opts.Observer.BreakerChanged},
	}
}

type bypass struct {
	inner   Locker
	timeout Option
	breaker breaker
}

func (b *bypass) Acquire(ctx context.Context, key string, opts ...Option) (Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !b.breaker.allow() {
		return &unlocked{ctx: ctx, bypassed: true}, nil
	}
	bounded := make([]Option, 0, 4)
	bounded = append(append(bounded, b.timeout), opts...) // the caller's own come last and win
	lease, err := b.inner.Acquire(ctx, key, bounded...)
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

// IsBypassed reports whether lease stands for no lock, because the backend was unavailable.
func IsBypassed(lease Lease) bool {
	for {
		switch l := lease.(type) {
		case *unlocked:
			return l.bypassed
		case interface{ unwrap() Lease }:
			lease = l.unwrap()
		default:
			return false
		}
	}
}
