package lock

import (
	"context"
	"errors"
	"time"
)

// Outcome is the outcome of an Acquire, or of a lease.
type Outcome int

// The outcomes. Lost belongs to a lease whose Release found the lock gone, the others to an Acquire.
const (
	Granted   Outcome = iota // the lock is the caller's
	Held                     // another holds it
	Bypassed                 // granted without a lock, see Bypass
	Cancelled                // the caller's context ended
	Failed                   // any other error
	Lost                     // granted, and lost before it was released
)

var outcomes = [...]string{
	Granted: "granted", Held: "held", Bypassed: "bypassed", Cancelled: "cancelled", Failed: "failed", Lost: "lost",
}

// String returns the outcome as a metric label.
func (o Outcome) String() string { return outcomes[o] }

// Observer receives what happens to locks, for metrics and logs. Its methods run on the caller's goroutine, outside all
// locks. They must not block and must be safe for concurrent use.
type Observer interface {
	// Locked reports the outcome of an Acquire and the time it took; for Lost, the time the lock was held.
	Locked(outcome Outcome, took time.Duration)
	// BreakerChanged reports that a Bypass stops using its backend (open, with the backend's last error) or uses it again.
	BreakerChanged(open bool, cause error)
}

// NoObserver ignores all events.
type NoObserver struct{}

func (NoObserver) Locked(Outcome, time.Duration) {}
func (NoObserver) BreakerChanged(bool, error)    {}

// Observe returns a Locker that reports the outcome of each Acquire on inner, and each lease whose Release finds the lock
// lost. Closing it closes inner.
func Observe(inner Locker, observer Observer) Locker { return &observed{inner, observer} }

type observed struct {
	inner    Locker
	observer Observer
}

func (o *observed) Acquire(ctx context.Context, key string, opts ...Option) (Lease, error) {
	start := time.Now()
	lease, err := o.inner.Acquire(ctx, key, opts...)
	now := time.Now()
	o.observer.Locked(OutcomeOf(lease, err), now.Sub(start))
	if err != nil {
		return nil, err
	}
	return &observedLease{Lease: lease, since: now, observer: o.observer}, nil
}

func (o *observed) Close() error { return o.inner.Close() }

// OutcomeOf returns the outcome of an Acquire.
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
	since    time.Time
	observer Observer // nil: the loss was reported
}

func (l *observedLease) Release(ctx context.Context) error {
	err := l.Lease.Release(ctx)
	if errors.Is(err, ErrLost) && l.observer != nil {
		l.observer.Locked(Lost, time.Since(l.since))
		l.observer = nil // later calls return ErrLost as well
	}
	return err
}
