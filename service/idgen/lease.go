package idgen

import (
	"context"
	"time"
)

// LeaseStore leases worker ids, two at a time: pair p holds the workers 2p and 2p+1, of which the generator uses one
// and keeps the other in reserve for a clock that goes back. Implementations live in the repository packages; Static
// is the one without a store.
//
// All methods are safe for concurrent use, block on the store until ctx ends, and may be repeated when their outcome is
// unknown: the second time then changes nothing that the first did.
type LeaseStore interface {
	// Acquire leases one pair of the request's range that nobody else holds: never used, given back, or expired by the
	// store's own clock. A pair that the request's owner holds already is granted again. Among free pairs it prefers
	// the one with the lowest ceilings, so that a pair spoilt by a fast clock is left alone as long as possible.
	//
	// It fails with ErrNoWorker when all pairs of the range are taken, and with ErrLayout when the store holds leases
	// of another layout.
	Acquire(ctx context.Context, want LeaseRequest) (Grant, error)

	// Renew makes the lease last for another ttl from now and stores the ceilings, neither of which is ever below the
	// one stored. It fails with ErrLeaseLost, changing nothing, when the grant's fence is no longer the pair's. A lease
	// that expired but was not taken by anybody else is renewed.
	Renew(ctx context.Context, held Grant, ttl time.Duration, ceilings Ceilings) error

	// Release ends the lease at once and stores the ceilings, which may be lower than those stored. A lease that the
	// grant's owner no longer holds is left as it is, without an error.
	Release(ctx context.Context, held Grant, ceilings Ceilings) error
}

// LeaseRequest says which pair is wanted, and by whom.
type LeaseRequest struct {
	Owner  string        // names one generator and no other, not even its successor in the same place
	Layout string        // Layout.String of all ids made under these leases
	First  int           // first pair of the range
	Count  int           // number of pairs in the range
	TTL    time.Duration // how long the lease lasts without being renewed
}

// Grant is a leased pair of workers.
type Grant struct {
	Pair     int
	Owner    string
	Fence    uint64 // greater than that of every earlier grant of the pair
	Ceilings Ceilings
}

// Ceilings holds, for the even and the odd worker of a pair, the Unix millisecond that no id of the worker has reached
// so far: earlier milliseconds may have been used, this one and later ones have not. Zero means never used.
type Ceilings [2]int64

// Pair is what a store knows of a pair of workers.
type Pair struct {
	Grant
	Live bool // somebody holds it, and the lease is not over
}

// Choose returns the pair to take, as LeaseStore.Acquire prescribes, from those of the range that the store has heard
// of; known is false for one that it has not. It is for implementations of LeaseStore, which have to make sure that
// nobody else takes the same.
func (want LeaseRequest) Choose(pairs []Pair) (best Pair, known bool, err error) {
	heard := make(map[int]bool, len(pairs))
	lowest := func(p Pair) int64 { return min(p.Ceilings[0], p.Ceilings[1]) }
	for _, p := range pairs {
		heard[p.Pair] = true
		if p.Owner == want.Owner {
			return p, true, nil
		}
		if !p.Live && (!known || lowest(p) < lowest(best)) {
			best, known = p, true
		}
	}
	if known && lowest(best) == 0 {
		return best, true, nil
	}
	for n := want.First; n < want.First+want.Count; n++ {
		if !heard[n] {
			return Pair{Grant: Grant{Pair: n}}, false, nil
		}
	}
	if !known {
		return best, false, ErrNoWorker
	}
	return best, true, nil
}
