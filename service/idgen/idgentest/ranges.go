package idgentest

import (
	"context"
	"fmt"
	"math"
	"sync"

	"seckill/service/idgen"
)

// Ranges is an idgen.RangeStore in memory that can be made to fail. The zero Ranges is ready for use.
type Ranges struct {
	Faults
	mu      sync.Mutex
	highest int64
	least   int64
}

// Allocate implements idgen.RangeStore.
func (r *Ranges) Allocate(ctx context.Context, n int64) (idgen.Range, error) {
	return meet(ctx, &r.Faults, "allocate", "", func() (idgen.Range, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		n := max(n, r.least)
		if n > math.MaxInt64-r.highest {
			return idgen.Range{}, fmt.Errorf("%w: the counter is at %d", idgen.ErrExhausted, r.highest)
		}
		first := r.highest + 1
		r.highest += n
		return idgen.Range{First: idgen.ID(first), Count: n, Least: r.least}, nil
	})
}

// SetLeast sets the store's own minimum.
func (r *Ranges) SetLeast(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.least = n
}

// SetHighest sets the counter, whatever it was.
func (r *Ranges) SetHighest(n int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.highest = n
}

// Highest returns the last number that anybody was given.
func (r *Ranges) Highest() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.highest
}
