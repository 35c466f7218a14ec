package idgen

import (
	"context"
	"sync"
	"time"
)

// LeaseStore leases worker ids in pairs: pair p consists of the workers 2p and 2p+1. A generator uses one of them, and
// the other one is its backup for a clock that goes back. Packages of repository implement it; Static needs no store.
//
// All methods are safe for concurrent use and block on the store until ctx ends. They are safe to repeat when their outcome
// is unknown: the repetition changes nothing that the first attempt did.
type LeaseStore interface {
	// Acquire leases a pair of the requested range that nobody holds: never used, released, or expired by the store's own
	// clock. A pair that the owner of the request holds already is granted again. Among free pairs it prefers the one
	// with the lowest ceilings, so that a pair that was used with a fast clock rests as long as possible.
	//
	// It returns ErrNoWorker when all pairs of the range are taken, and ErrLayout when the store has leases of another
	// layout.
	Acquire(ctx context.Context, want LeaseRequest) (Grant, error)

	// Renew makes the lease last for another ttl from now and stores the ceilings. Neither is ever lowered. It returns
	// ErrLeaseLost, and changes nothing, when the grant's fence is not the pair's any more. A lease that expired is
	// renewed if no other owner has taken it.
	Renew(ctx context.Context, held Grant, ttl time.Duration, ceilings Ceilings) error

	// Release ends the lease at once and stores the ceilings, which may be lower than those stored. It does nothing,
	// without an error, when the grant's owner does not hold the lease any more.
	Release(ctx context.Context, held Grant, ceilings Ceilings) error
}

// LeaseRequest describes which pair an owner wants.
type LeaseRequest struct {
	Owner  string        // names one generator, and not its successor in the same place
	Layout string        // Layout.String of all ids made under these leases
	First  int           // first pair of the range
	Count  int           // number of pairs in the range
	TTL    time.Duration // how long the lease lasts without a renewal
}

// Grant is a leased pair of workers.
type Grant struct {
	Pair     int
	Owner    string
	Fence    uint64 // higher for every later grant of the pair
	Ceilings Ceilings
}

// Ceilings holds, for the even and the odd worker of a pair, the Unix millisecond that no id of the worker has reached so
// far. Earlier milliseconds may have been used, this one and later ones were not. Zero means never used.
type Ceilings [2]int64

// Pair is what a store knows about a pair of workers.
type Pair struct {
	Grant
	Live bool // an owner holds it, and the lease has not ended
}

// Choose returns which pair LeaseStore.Acquire should take. pairs are all pairs of the range that the store has a record
// of; known is false if the chosen pair has none. Implementations of LeaseStore call it, and have to make sure that no
// other owner takes the same pair.
func (want LeaseRequest) Choose(pairs []Pair) (best Pair, known bool, err error) {
	recorded := make(map[int]bool, len(pairs))
	lowest := func(p Pair) int64 { return min(p.Ceilings[0], p.Ceilings[1]) }
	for _, p := range pairs {
		recorded[p.Pair] = true
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
		if !recorded[n] {
			return Pair{Grant: Grant{Pair: n}}, false, nil
		}
	}
	if !known {
		return best, false, ErrNoWorker
	}
	return best, true, nil
}

// Static is a LeaseStore for one process that alone uses its worker ids. Tests and loadtest/peers use it; the shop leases its
// workers in a database or in ZooKeeper. Static keeps the ceilings in memory, so that generators of the process can follow each other. Across restarts, uniqueness depends on
// the clock alone.
type Static struct {
	mu    sync.Mutex
	grant Grant
}

// NewStatic returns a store with one pair: worker and its neighbour. The worker is counted over all data centres
// (data centre << WorkerBits | worker). Ids carry the even one of the two until the clock goes back too far.
func NewStatic(worker int) *Static { return &Static{grant: Grant{Pair: worker >> 1}} }

// Acquire implements LeaseStore. The lease of another owner does not expire.
func (s *Static) Acquire(_ context.Context, want LeaseRequest) (Grant, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	inRange := want.First <= s.grant.Pair && s.grant.Pair < want.First+want.Count
	if !inRange || s.grant.Owner != "" && s.grant.Owner != want.Owner {
		return Grant{}, ErrNoWorker
	}
	s.grant.Owner = want.Owner
	s.grant.Fence++
	return s.grant, nil
}

// Renew implements LeaseStore.
func (s *Static) Renew(_ context.Context, held Grant, _ time.Duration, c Ceilings) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.grant.Owner != held.Owner || s.grant.Fence != held.Fence {
		return ErrLeaseLost
	}
	for i := range c {
		s.grant.Ceilings[i] = max(s.grant.Ceilings[i], c[i])
	}
	return nil
}

// Release implements LeaseStore.
func (s *Static) Release(_ context.Context, held Grant, c Ceilings) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.grant.Owner == held.Owner && s.grant.Fence == held.Fence {
		s.grant.Owner, s.grant.Ceilings = "", c
	}
	return nil
}
