// Package lock defines the distributed lock of this program, independent of the backend that keeps it.
//
// A lock here saves work; it never makes the result correct. Every backend can lose a lock while its holder still believes
// in it: a lease ends during a pause, a server fails over and forgets a key, a session expires. What must not happen
// twice has to be refused by the database, with a condition, a unique index or a fencing token.
package lock

import (
	"context"
	"errors"
	"time"
)

// Errors that every backend returns, possibly wrapped: test for them with [errors.Is].
var (
	// ErrHeld means that another holds the lock, and the caller did not want to wait (any longer).
	ErrHeld = errors.New("lock: held by another")

	// ErrLost means that the lock was, or may have been, granted to another before its holder was done: its lease
	// ended, its session expired, or it was taken away. It is also the cause that cancels a lease's context.
	ErrLost = errors.New("lock: lost")

	// ErrUnavailable means that the backend could not be reached, or did not answer in time. It is unknown whether the
	// lock is free. A caller that does not depend on the lock may continue without it, see [Bypass].
	ErrUnavailable = errors.New("lock: backend unavailable")

	// ErrClosed means that the Locker was closed.
	ErrClosed = errors.New("lock: closed")
)

// Locker grants locks by name. It is safe for concurrent use.
type Locker interface {
	// Acquire waits until the lock named key is granted, and returns the lease.
	//
	// The lease's context is derived from ctx. When ctx ends, a wait ends with ctx's error and leaves nothing behind at
	// the backend, and a lease that was already granted is no longer renewed. To bound the wait alone, use [WithWait].
	//
	// Re-entry is by context: if ctx is, or derives from, the context of a lease that this Locker granted on key and
	// that is still held, Acquire does not wait. The lock is free again after as many releases as acquisitions.
	//
	// Other errors are ErrHeld, ErrUnavailable, ErrClosed and, on re-entry to a lock that is lost, ErrLost.
	Acquire(ctx context.Context, key string, opts ...Option) (Lease, error)

	// Close ends all waits with ErrClosed, releases all locks, cancels the contexts of their leases with cause ErrClosed
	// and stops all goroutines. It takes a bounded time. A second call returns nil.
	Close() error
}

// Lease is a granted lock. The caller of Acquire owns it and has to release it.
//
// A holder that disappears does not keep its lock for ever. The lease is no longer renewed when the context given to
// Acquire has ended. It counts as released when the garbage collector finds that neither the lease nor its context is
// reachable; so code that works under a lock has to keep one of the two.
type Lease interface {
	// Context is derived from the context given to Acquire. It is cancelled with cause ErrLost when the lock can no
	// longer be trusted, by the holder's own clock. Release cancels it too. Work under the lock should use this
	// context. That does not protect the work: a process can pause after it has looked at the context.
	Context() context.Context

	// Token is a fencing token: higher for every later grant of the same key. A store that refuses a lower token than
	// the highest it has seen is safe from a holder that does not know that it lost the lock. ok is false if the
	// backend has no tokens.
	Token() (token uint64, ok bool)

	// Release releases the lock. It uses only the values of ctx: it works with a cancelled ctx too, and the backend
	// bounds its time. It returns ErrLost when the caller did not hold the lock any more, and ErrUnavailable when the
	// backend did not answer; the lock is free then at the latest when its lease or session ends. Release is
	// idempotent: later calls return the result of the first one, and never touch a lock that another has now.
	Release(ctx context.Context) error
}

// Do runs fn under the lock named key, with the lease's context, and releases the lock afterwards, even if fn panics. Do
// returns the error of Acquire or that of fn. If the lock was lost while fn ran, ErrLost is joined to it: what fn did was
// not protected to its end.
func Do(ctx context.Context, locker Locker, key string, fn func(ctx context.Context) error, opts ...Option) (err error) {
	lease, err := locker.Acquire(ctx, key, opts...)
	if err != nil {
		return err
	}
	defer func() {
		// A release without an answer does not undo the work; the lock becomes free by its lease.
		if released := lease.Release(ctx); errors.Is(released, ErrLost) && !errors.Is(err, ErrLost) {
			err = errors.Join(err, released)
		}
	}()
	return fn(lease.Context())
}

// Settings are the options of one Acquire. Callers use the options; backends read the Settings.
type Settings struct {
	Try     bool
	Lease   time.Duration // zero: the backend's own lease, which is renewed
	Wait    time.Duration // zero: no bound
	Timeout time.Duration // zero: the backend's own timeout
}

// Option changes how one lock is acquired.
type Option func(*Settings)

// NewSettings applies opts.
func NewSettings(opts []Option) Settings {
	var s Settings
	for _, opt := range opts {
		opt(&s)
	}
	return s
}

// Try makes Acquire return ErrHeld instead of waiting for a holder.
func Try() Option { return func(s *Settings) { s.Try = true } }

// WithLease makes the lease end after d, without renewal, whether or not the holder is done. On re-entry d is ignored: the
// outermost lease counts.
func WithLease(d time.Duration) Option { return func(s *Settings) { s.Lease = d } }

// WithWait makes Acquire return ErrHeld when the lock was not granted within d. Unlike a deadline of the context, it does
// not limit the lease.
func WithWait(d time.Duration) Option { return func(s *Settings) { s.Wait = d } }

// WithTimeout makes Acquire return ErrUnavailable when the backend does not answer within d. Waiting for a holder does
// not count.
func WithTimeout(d time.Duration) Option { return func(s *Settings) { s.Timeout = d } }

// None returns a Locker that grants every lock to everyone at once. It is for running without a lock, and for proving
// that a program is correct without one. Its leases have no token.
func None() Locker { return none{} }

type none struct{}

func (none) Acquire(ctx context.Context, _ string, _ ...Option) (Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return &unlocked{ctx: ctx}, nil
}

func (none) Close() error { return nil }

// unlocked is a lease without a lock.
type unlocked struct {
	ctx      context.Context
	bypassed bool
}

func (u *unlocked) Context() context.Context      { return u.ctx }
func (u *unlocked) Token() (uint64, bool)         { return 0, false }
func (u *unlocked) Release(context.Context) error { return nil }
