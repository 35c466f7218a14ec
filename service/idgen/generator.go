// Package idgen hands out 64-bit ids that are unique for ever: across goroutines, instances, restarts, and clocks that
// jump. Every generator in it is a counter below a leased ceiling: Snowflake leases time, Segment leases numbers.
//
// The package computes and waits; whatever is stored (worker leases, segments) stays behind small interfaces that the
// repository packages implement. Package idgentest holds the suite that every Generator has to pass.
package idgen

import (
	"context"
	"errors"
)

// Generator hands out ids. All methods are safe for use by many goroutines at once.
//
// Uniqueness: no id is handed out twice, neither by this generator nor by any other that shares its store, whatever
// fails. Ids may be skipped: after an error, a restart or a cancelled call some of them are never seen by anybody.
// Ids of one generator ascend in the order of the calls, as long as each call begins after the previous one returned;
// Snowflake gives this up when it changes to its backup worker or to another lease, which it reports to its Observer.
//
// Blocking: as long as ids are at hand no call waits or does input or output. Otherwise (the store is loading, the
// clock has to catch up) a call waits until ids are there or ctx ends, and one waiting caller never holds up another
// that could be served.
//
// Errors: ErrClosed after Close; ErrExhausted when the id space is used up for good; ErrLeaseLost when the right to
// issue ids has run out and could not be renewed; otherwise what the store answered, or the cause of ctx. After
// ErrLeaseLost and store errors a later call may succeed.
type Generator interface {
	// Next returns the next id.
	Next(ctx context.Context) (ID, error)

	// NextN fills dst with ids, ascending but not necessarily adjacent. After an error the contents of dst are
	// unspecified and must not be used.
	NextN(ctx context.Context, dst []ID) error

	// Close stops the generator, fails waiting callers with ErrClosed, and gives leases back, for which it may talk to
	// the store until ctx ends. An error means that a lease could not be given back and stays taken until it expires;
	// the generator is closed all the same. Further calls do nothing and return what the first one did.
	Close(ctx context.Context) error
}

// Errors that callers may want to tell apart with errors.Is.
var (
	// ErrInvalid: the text is not an ID, or the ID cannot be written as text.
	ErrInvalid = errors.New("idgen: not a valid id")
	// ErrClosed: the generator was closed.
	ErrClosed = errors.New("idgen: generator is closed")
	// ErrExhausted: there are no further ids in this layout or segment space, and waiting does not help.
	ErrExhausted = errors.New("idgen: ids are used up")
	// ErrLeaseLost: the lease on the worker id ended before it could be renewed, or somebody else holds it now.
	ErrLeaseLost = errors.New("idgen: worker lease is lost")
	// ErrNoWorker: every worker id of the layout is leased to somebody else.
	ErrNoWorker = errors.New("idgen: all worker ids are taken")
)
