package lock

import (
	"context"
	"errors"
	"time"
)

// Outcome is what became of an attempt to acquire a lock, or of a lease.
type Outcome int

// The outcomes. Lost is that of a lease whose Release found the lock gone; the others are those of Acquire.
const (
	Granted   Outcome = iota // the lock is the caller's
	Held                     // another holds it
	Bypassed                 // granted without a lock, see Bypass
	Cancelled                // the caller's context ended
	Failed                   // any other error
	Lost                     // granted, and lost before it was released
)

// String returns the outcome as a metric label.
func (o Outcome) String() string {
	switch o {
	case Granted:
		return "granted"
	case Held:
		return "held"
	case Bypassed:
		return "bypassed"
	case Cancelled:
		return "cancelled"
	case Lost:
		return "lost"
	default:
		return "failed"
	}
}

// Observe returns a Locker that reports to report what becomes of inner's locks: the outcome of each Acquire with the
// time that it took, and each lease whose Release finds the lock lost, with the time that it was held. It calls report
// on the caller's goroutine. Closing it closes inner.
func Observe(inner Locker, report func(outcome Outcome, took time.Duration)) Locker {
	return &observed{inner: inner, report: report}
}

type observed struct {
	inner  Locker
	report func(Outcome, time.Duration)
}

func (o *observed) Acquire(ctx context.Context, key string, opts ...Option) (Lease, error) {
	start := time.Now()
	lease, err := o.inner.Acquire(ctx, key, opts...)
	now := time.Now()
	o.report(OutcomeOf(lease, err), now.Sub(start))
	if err != nil {
		return nil, err
	}
	return &observedLease{Lease: lease, since: now, report: o.report}, nil
}

func (o *observed) Close() error { return o.inner.Close() }

// OutcomeOf names what an Acquire returned.
func OutcomeOf(lease Lease, err error) Outcome {
	switch {
	case err == nil && IsBypassed(lease):
		return Bypassed
	case err == nil:
		return Granted
	case errors.Is(err, ErrHeld):
		return Held
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return Cancelled
	default:
		return Failed
	}
}

type observedLease struct {
	Lease
	since  time.Time
	report func(Outcome, time.Duration)
}

func (l *observedLease) Release(ctx context.Context) error {
	err := l.Lease.Release(ctx)
	if errors.Is(err, ErrLost) && l.report != nil {
		l.report(Lost, time.Since(l.since))
		l.report = nil // Release is idempotent, so is its report; a lease has one owner
	}
	return err
}

func (l *observedLease) unwrap() Lease { return l.Lease }
