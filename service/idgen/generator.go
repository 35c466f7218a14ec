// Package idgen hands out 64-bit ids that are unique for ever: across goroutines, instances, restarts and clocks that
// jump. Every generator is a counter below a leased ceiling: Snowflake leases time, Segment leases numbers.
//
// The package computes and waits. Stores of worker leases and of segments are behind small interfaces, which packages of
// repository implement. Package idgentest has the suites that generators and stores must pass.
package idgen

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"sync/atomic"
)

// Generator hands out ids. All methods are safe for concurrent use.
//
// Uniqueness: no id is handed out twice, neither by this generator nor by another one that shares its store, whatever
// fails. Ids may be skipped: after an error, a restart or a cancelled call, nobody gets some of them.
// Ids of one generator ascend in the order of calls, if each call begins after the previous one returned. Snowflake
// gives this up when it changes to its backup worker or to another lease, which it reports to its Observer.
//
// Blocking: while ids are available, no call waits or does input or output. Otherwise (the store is loading, the clock
// has to catch up) a call waits until there are ids or ctx ends. A waiting call never delays one that can be served.
//
// Errors: ErrClosed after Close; ErrExhausted when the id space is used up for good; ErrLeaseLost when the right to
// issue ids has ended and could not be renewed; otherwise the store's error, or the cause of ctx. After ErrLeaseLost and
// store errors a later call may succeed.
type Generator interface {
	// Next returns the next id.
	Next(ctx context.Context) (ID, error)

	// NextN fills dst with ids, ascending but not necessarily adjacent. After an error the contents of dst are undefined.
	NextN(ctx context.Context, dst []ID) error

	// Close stops the generator, fails waiting calls with ErrClosed, and returns leases to the store, until ctx ends.
	// An error means that a lease could not be returned and stays taken until it expires; the generator is closed
	// nevertheless. Further calls do nothing and return the result of the first one.
	Close(ctx context.Context) error
}

// Errors to test for with errors.Is.
var (
	// ErrInvalid: the text is not an ID, or the ID cannot be written as text.
	ErrInvalid = errors.New("idgen: not a valid id")
	// ErrClosed: the generator was closed.
	ErrClosed = errors.New("idgen: generator is closed")
	// ErrExhausted: the layout or the segment space has no further ids, and waiting does not help.
	ErrExhausted = errors.New("idgen: ids are used up")
	// ErrLeaseLost: the lease of the worker id ended before it could be renewed, or another owner has it now.
	ErrLeaseLost = errors.New("idgen: worker lease is lost")
	// ErrNoWorker: every worker id of the layout is leased to another owner.
	ErrNoWorker = errors.New("idgen: all worker ids are taken")
)

// counter hands out the numbers from base to base+size-1, each once, to any number of goroutines. All generators are built
// on it: their numbers are leased, and below the leased ceiling one atomic addition is enough.
type counter struct {
	next atomic.Int64 // counts from zero, so that taking from an empty counter cannot overflow, whatever base is
	_    [56]byte     // keeps the fields below, which are only read, off the cache line that every call writes
	base int64
	size int64
}

// maxTake bounds one take, so that all goroutines of a process together cannot count past 63 bits.
const maxTake = 1 << 16

// take takes up to n numbers and returns the first and how many there are. There are none when the counter is used up.
func (c *counter) take(n int64) (first, taken int64) {
	n = min(n, maxTake)
	start := c.next.Add(n) - n
	if start >= c.size {
		return 0, 0
	}
	return c.base + start, min(n, c.size-start)
}

// used returns how many numbers were taken.
func (c *counter) used() int64 { return min(c.next.Load(), c.size) }

// stop makes the counter empty and returns the first number that was not taken.
func (c *counter) stop() int64 { return c.base + min(c.next.Swap(math.MaxInt64/2), c.size) }

// ID is an identifier from a Generator. A valid ID is positive; zero means "none yet".
//
// As text and in JSON it is a string of decimal digits, because JavaScript and many JSON libraries read numbers as
// doubles, which lose the last digits of an ID. In a database it is a BIGINT.
type ID int64

// ParseID reads the decimal form that String writes. It refuses signs, spaces, leading zeros, digits other than 0-9, zero
// and numbers of more than 63 bits with ErrInvalid. So each ID has exactly one spelling.
func ParseID(s string) (ID, error) {
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil || v <= 0 || strconv.FormatInt(v, 10) != s {
		return 0, fmt.Errorf("%w: want a positive number of at most 63 bits in decimal digits", ErrInvalid)
	}
	return ID(v), nil
}

// String returns the ID in decimal.
func (id ID) String() string { return strconv.FormatInt(int64(id), 10) }

// MarshalText writes the ID in decimal; encoding/json adds the quotes. It returns ErrInvalid for an ID that is not
// positive, because it could not be read back. Tag an optional field with omitzero.
func (id ID) MarshalText() ([]byte, error) {
	if id <= 0 {
		return nil, fmt.Errorf("%w: %d is not positive", ErrInvalid, int64(id))
	}
	return strconv.AppendInt(nil, int64(id), 10), nil
}

// UnmarshalText reads what MarshalText wrote, and refuses everything else as ParseID does. encoding/json refuses a JSON
// number for a type that reads text. A JSON null leaves the ID unchanged, as is usual in Go.
func (id *ID) UnmarshalText(text []byte) error {
	v, err := ParseID(string(text))
	if err == nil {
		*id = v
	}
	return err
}
