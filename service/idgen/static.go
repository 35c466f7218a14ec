package idgen

import (
	"context"
	"sync"
	"time"
)

// Static is a LeaseStore for one process that knows its worker id and is alone with it: the embedded mode, and tests.
// It remembers the ceilings while the process lives, so that generators may follow each other, and forgets them with
// it. Uniqueness across restarts then rests on the clock alone; where that is not enough, lease from a database.
type Static struct {
	mu    sync.Mutex
	grant Grant
}

// NewStatic returns a store with one pair: worker and its neighbour. The worker is counted over all data centres
// (data centre << WorkerBits | worker in it). Ids carry the even one of the two until the clock goes back too far.
func NewStatic(worker int) *Static { return &Static{grant: Grant{Pair: worker >> 1}} }

// Acquire implements LeaseStore. The lease of another owner stands until it is released; it does not expire.
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
