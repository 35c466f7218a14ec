package idgen

import (
	"context"
	"errors"
)

// RangeStore leases ranges of numbers to segments. Implementations live in the repository packages.
type RangeStore interface {
	// Allocate takes at least n numbers off the store, durably, before it returns them: nobody else gets any of them,
	// ever. The store may give more than n where its own minimum says so. It is safe for concurrent use and blocks on
	// the store until ctx ends. When the outcome is unknown, the caller asks again and whatever the first request took
	// is lost.
	//
	// Among errors, ErrExhausted and ErrCounterLost say that asking again is of no use until somebody steps in.
	Allocate(ctx context.Context, n int64) (Range, error)
}

// Range is a stretch of numbers.
type Range struct {
	First ID    // positive
	Count int64 // at least 1; First+Count-1 is the last one
	Least int64 // the store's own minimum of Count, which may change at any time; zero if it has none
}

// ErrCounterLost marks a store whose counter is missing, or behind what it is known to have reached: it has lost data, and what
// it would hand out now may be in use. It stays refused until it is restored.
var ErrCounterLost = errors.New("idgen: the store has lost its counter")
