package idgentest

import (
	"context"
	"fmt"
	"slices"
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
	var known []idgen.Pair
	for p, pair := range l.pairs {
		if want.First <= p && p < want.First+want.Count {
			known = append(known, idgen.Pair{Grant: pair.grant, Live: !pair.free()})
		}
	}
	slices.SortFunc(known, func(a, b idgen.Pair) int { return a.Pair - b.Pair })
	best, _, err := want.Choose(known)
	if err != nil {
		return idgen.Grant{}, err
	}
	best.Owner = want.Owner
	best.Fence++
	l.pairs[best.Pair] = &leased{grant: best.Grant, expires: time.Now().Add(want.TTL)}
	return best.Grant, nil
}

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
