package service

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"seckill/service/idgen"
)

func TestCommitter_VerdictComesAfterTheCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		if early := earlyVerdicts(t, store, store); early != 0 {
			t.Errorf("%d orders were answered before they were durable", early)
		}
	})
}

// Negative control: a store that returns before its commit is durable is noticed.
func TestCommitter_EarlyVerdictIsNoticed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		if early := earlyVerdicts(t, store, hastyStore{store}); early != 20 {
			t.Errorf("%d of 20 early verdicts were noticed", early)
		}
	})
}

// hastyStore answers before it has committed.
type hastyStore struct{ *fakeStore }

func (h hastyStore) Place(ctx context.Context, id idgen.ID, batch []*Placement) {
	later := make([]*Placement, len(batch))
	for i, p := range batch {
		copied := *p
		later[i] = &copied
	}
	go h.fakeStore.Place(context.WithoutCancel(ctx), id, later)
}

// earlyVerdicts places 20 orders and counts those whose answer came before their batch was durable.
func earlyVerdicts(t *testing.T, store *fakeStore, orders OrderStore) (early int) {
	store.sell(voucherID, 100, 1)
	var mu sync.Mutex
	durable := map[UserID]bool{}
	store.placed = func(_ context.Context, _ idgen.ID, batch []*Placement) {
		time.Sleep(time.Millisecond) // the flush
		mu.Lock()
		defer mu.Unlock()
		for _, p := range batch {
			durable[p.Order.UserID] = true
		}
	}
	s := openShop(t, store, func(c *Config) { c.Orders = orders })
	var wg sync.WaitGroup
	for u := range UserID(20) {
		wg.Go(func() {
			wantNoError(t, buy(s, u+1))
			mu.Lock()
			defer mu.Unlock()
			if !durable[u+1] {
				early++
			}
		})
	}
	wg.Wait()
	time.Sleep(time.Second) // for the late commits of the hasty store
	return early
}

func TestCommitter_StorePanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.sell(voucherID, 100, 1)
		gate := newTurnstile(store)
		broken := true
		store.placed = func(context.Context, idgen.ID, []*Placement) {
			if broken {
				panic("a defect in the store")
			}
		}
		seen := &recorder{}
		s := openShop(t, store, func(c *Config) { c.CommitConcurrency, c.Observer = 1, seen })
		errs := make([]error, 3)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() { errs[i] = buy(s, UserID(i+1)) })
			synctest.Wait()
		}
		gate.let(2)
		wg.Wait()
		for _, err := range errs {
			var e *Error
			if !errors.As(err, &e) || e.Code != CodeUnknown || e.RequestID == "" || !strings.Contains(e.Error(), "a defect in the store") {
				t.Errorf("answered %v, want unknown with its request id and cause", err)
			}
		}
		broken = false // the slot is free again, and repeating the request resolves the unknown outcome
		wg.Go(func() { errs[0] = buy(s, 4) })
		synctest.Wait()
		gate.let(1)
		wg.Wait()
		wantNoError(t, errs[0])
		if seen.lastWaiting() != 0 {
			t.Errorf("%d orders are said to be waiting", seen.lastWaiting())
		}
		wantAudit(t, store)
	})
}
