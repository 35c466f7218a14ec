package idgentest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"seckill/service/idgen"
)

// Leases is an idgen.LeaseStore in memory, which lives in the time of its testing/synctest bubble and can be made to
// fail. The zero Leases is ready for use.
type Leases struct {
	Faults
	mu     sync.Mutex
	layout string
	pairs  map[int]*leased
}

type leased struct {
	grant   idgen.Grant
	expires time.Time
}

func (l *leased) free() bool { return l.grant.Owner == "" || !time.Now().Before(l.expires) }

// Acquire implements idgen.LeaseStore.
func (l *Leases) Acquire(ctx context.Context, want idgen.LeaseRequest) (idgen.Grant, error) {
	return meet(ctx, &l.Faults, "acquire", want.Owner, func() (idgen.Grant, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.acquire(want)
	})
}

func (l *Leases) acquire(want idgen.LeaseRequest) (idgen.Grant, error) {
	if l.pairs == nil {
		l.pairs, l.layout = map[int]*leased{}, want.Layout
	}
	if l.layout != want.Layout {
		return idgen.Grant{}, fmt.Errorf("%w: the store's is %s", idgen.ErrLayout, l.layout)
	}
	best := l.best(want)
	if best == nil {
		return idgen.Grant{}, idgen.ErrNoWorker
	}
	best.grant.Owner = want.Owner
	best.grant.Fence++
	best.expires = time.Now().Add(want.TTL)
	return best.grant, nil
}

func (l *Leases) best(want idgen.LeaseRequest) (best *leased) {
	for p := want.First; p < want.First+want.Count; p++ {
		pair := l.pairs[p]
		if pair == nil {
			pair = &leased{grant: idgen.Grant{Pair: p}}
			l.pairs[p] = pair
		}
		if pair.grant.Owner == want.Owner {
			return pair
		}
		if pair.free() && (best == nil || lowest(pair.grant.Ceilings) < lowest(best.grant.Ceilings)) {
			best = pair
		}
	}
	return best
}

func lowest(c idgen.Ceilings) int64 { return min(c[0], c[1]) }

// Renew implements idgen.LeaseStore.
func (l *Leases) Renew(ctx context.Context, held idgen.Grant, ttl time.Duration, c idgen.Ceilings) error {
	return l.change(ctx, "renew", held, func(pair *leased) error {
		if pair == nil {
			return idgen.ErrLeaseLost
		}
		pair.expires = time.Now().Add(ttl)
		for i := range c {
			pair.grant.Ceilings[i] = max(pair.grant.Ceilings[i], c[i])
		}
		return nil
	})
}

// Release implements idgen.LeaseStore.
func (l *Leases) Release(ctx context.Context, held idgen.Grant, c idgen.Ceilings) error {
	return l.change(ctx, "release", held, func(pair *leased) error {
		if pair != nil {
			pair.grant.Owner, pair.grant.Ceilings = "", c
		}
		return nil
	})
}

// change calls effect with the pair that is held, or with nil when it is not held any more.
func (l *Leases) change(ctx context.Context, op string, held idgen.Grant, effect func(*leased) error) error {
	_, err := meet(ctx, &l.Faults, op, held.Owner, func() (struct{}, error) {
		l.mu.Lock()
		defer l.mu.Unlock()
		pair := l.pairs[held.Pair]
		if pair != nil && (pair.grant.Owner != held.Owner || pair.grant.Fence != held.Fence) {
			pair = nil
		}
		return struct{}{}, effect(pair)
	})
	return err
}

// Pairs returns the grants as they are stored, by pair.
func (l *Leases) Pairs() map[int]idgen.Grant {
	l.mu.Lock()
	defer l.mu.Unlock()
	grants := make(map[int]idgen.Grant, len(l.pairs))
	for p, pair := range l.pairs {
		grants[p] = pair.grant
	}
	return grants
}
