// Package lock says what a distributed lock is to this program, whichever backend keeps it.
//
// A lock here saves work; it is never what makes the result correct. Every backend can lose a lock while its holder
// still believes in it: a lease runs out during a pause, a server fails over and forgets a key, a session expires. What
// must not happen twice has to be refused by the database, with a condition, a unique index or a fencing token.
package lock

import (
	"context"
	"errors"
)

// Errors that every backend returns, possibly wrapped: test for them with [errors.Is].
var (
	// ErrHeld says that [Try] found the lock held by another.
	ErrHeld = errors.New("lock: held by another")

	// ErrLost says that the lock was, or may have been, another's before its holder was done: its lease ran out, its
	// session expired, or it was taken away. It is also the cause that cancels a lease's context.
	ErrLost = errors.New("lock: lost")

	// ErrUnavailable says that the backend could not be reached, or did not answer in time. Whether the lock is free
	// is unknown. A caller that does not depend on the lock may go on without it; [Bypass] does.
	ErrUnavailable = errors.New("lock: backend unavailable")

	// ErrClosed says that the Locker was closed.
	ErrClosed = errors.New("lock: closed")
)

// Locker grants locks by name. It is safe for concurrent use.
type Locker interface {
	// Acquire waits until the lock named key is the caller's, and returns the lease on it.
	//
	// The lease's context is derived from ctx: when ctx ends, a wait ends with ctx's error and leaves nothing behind at
	// the backend, and a lease that was already granted is no longer kept alive. To bound the wait alone, use
	// [WithWait].
	//
	// Re-entry is by context: where ctx is, or derives from, the context of a lease that this Locker granted on key
	// and that is still held, Acquire does not wait but deepens that hold. The lock is free again after as many
	// releases as there were acquisitions.
	//
	// Other errors are ErrHeld (with Try, or when WithWait's time is over), ErrUnavailable, ErrClosed and, when
	// deepening a hold that is gone, ErrLost.
	Acquire(ctx context.Context, key string, opts ...Option) (Lease, error)

	// Close ends all waits with ErrClosed, gives back what is still held, cancels the contexts of those leases with
	// cause ErrClosed and stops all goroutines. It takes a bounded time. A second call returns nil.
	Close() error
}

// Lease is a lock that was granted. It belongs to whoever acquired it, who has to release it.
//
// A holder that is gone without releasing does not keep its lock for ever: the lease is no longer renewed when the context
// given to Acquire has ended, and a lease counts as released when the garbage collector finds that nobody can reach it,
// or its context, any more. So whoever works under a lock has to keep one of the two.
type Lease interface {
	// Context is derived from the context given to Acquire. It is cancelled with cause ErrLost the moment the lock can
	// no longer be trusted, by the holder's own clock, not when somebody tells it. Release cancels it too. Work done
	// under the lock should be done with this context; a pause of the process can still end after the loss, before
	// the cancellation is seen, so it is a courtesy and not a guard.
	Context() context.Context

	// Token is a fencing token: higher for every later grant of the same key. A store that refuses a token lower than
	// the highest it has seen is safe from a holder that does not know that it lost the lock. It is false where the
	// backend has no tokens.
	Token() (token uint64, ok bool)

	// Release gives the lock back. It uses ctx for its values only: a cancelled ctx does not keep it from releasing,
	// and its time is bounded by the backend. It returns ErrLost when the lock was no longer the caller's, and
	// ErrUnavailable when the backend did not answer; the lock then becomes free at the latest when its lease or
	// session ends. Release is idempotent: later calls return what the first one did, and never touch a lock that was
	// granted to another in the meantime.
	Release(ctx context.Context) error
}

// Do runs fn under the lock named key and releases it afterwards, also when fn panics. The context given to fn is the
// lease's. Do returns the error of acquiring, or that of fn; if the lock was lost while fn ran, the error is, or also
// is, ErrLost, and what fn did was not protected to its end.
func Do(ctx context.Context, locker Locker, key string, fn func(ctx context.Context) error, opts ...Option) (err error) {
	lease, err := locker.Acquire(ctx, key, opts...)
	if err != nil {
		return err
	}
	defer func() {
		// A release without an answer does not undo the work; the lock frees itself.
		if released := lease.Release(ctx); errors.Is(released, ErrLost) && !errors.Is(err, ErrLost) {
			err = errors.Join(err, released)
		}
	}()
	return fn(lease.Context())
}
