package service

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"seckill/service/idgen"
)

// turnstile lets one batch at a time through to the model, when the test calls let.
type turnstile struct{ turn chan struct{} }

func (w turnstile) wait(context.Context, idgen.ID, []*Placement) { <-w.turn }

// let lets n batches through, one after the other, and waits for everything that follows.
func (w turnstile) let(n int) {
	for range n {
		w.turn <- struct{}{}
		synctest.Wait()
	}
}

func newTurnstile(store *fakeStore) turnstile {
	w := turnstile{make(chan struct{})}
	store.placing = w.wait
	return w
}

// arrive sends buyers one after the other; each is in the queue before the next one comes.
func arrive(wg *sync.WaitGroup, s *Shop, users ...UserID) {
	for _, u := range users {
		wg.Go(func() { _ = buy(s, u) })
		synctest.Wait()
	}
}

func users(from, to UserID) (us []UserID) {
	for u := from; u <= to; u++ {
		us = append(us, u)
	}
	return us
}

func TestCommitter_BatchIsWhatArrivedDuringTheLastCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.sell(voucherID, 100, 1)
		gate := newTurnstile(store)
		s := openShop(t, store, func(c *Config) { c.BatchMax = 4 })
		var wg sync.WaitGroup
		arrive(&wg, s, users(1, 1)...)
		arrive(&wg, s, users(2, 4)...)
		gate.let(1)
		arrive(&wg, s, users(5, 14)...)
		gate.let(4)
		wg.Wait()
		if want := []int{1, 3, 4, 4, 2}; !slices.Equal(store.batchSizes(), want) {
			t.Errorf("batches of %v, want %v", store.batchSizes(), want)
		}
		wantAudit(t, store)
	})
}

// Orders that arrive while the sale waits for a slot are in its batch, too.
func TestCommitter_BatchIsTakenWithItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.sell(voucherID, 100, 1)
		store.sell(8, 100, 1)
		gate := newTurnstile(store)
		s := openShop(t, store, func(c *Config) { c.CommitConcurrency = 1 })
		var wg sync.WaitGroup
		wg.Go(func() {
			_, _, err := s.PlaceOrder(t.Context(), PlaceRequest{VoucherID: 8, UserID: 1})
			wantNoError(t, err)
		})
		synctest.Wait()
		arrive(&wg, s, users(1, 3)...)
		gate.let(2)
		wg.Wait()
		if want := []int{1, 3}; !slices.Equal(store.batchSizes(), want) {
			t.Errorf("batches of %v, want %v", store.batchSizes(), want)
		}
	})
}

func TestCommitter_SingleOrderDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.sell(voucherID, 100, 1)
		s := openShop(t, store)
		start := time.Now()
		for u := range UserID(5) {
			wantNoError(t, buy(s, u+1))
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("five lone orders waited %v", took)
		}
		if want := []int{1, 1, 1, 1, 1}; !slices.Equal(store.batchSizes(), want) {
			t.Errorf("batches of %v, want %v", store.batchSizes(), want)
		}
	})
}

func TestCommitter_FirstComeFirstServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.sell(voucherID, 13, 1) // the last unit is in the middle of a batch
		gate := newTurnstile(store)
		var order []UserID
		store.placed = func(_ context.Context, _ idgen.ID, batch []*Placement) {
			for _, p := range batch {
				order = append(order, p.Order.UserID)
				if sold := p.Err == nil; sold != (p.Order.UserID <= 13) {
					t.Errorf("user %d: %v", p.Order.UserID, p.Err)
				}
			}
		}
		s := openShop(t, store, func(c *Config) { c.BatchMax = 5 })
		var wg sync.WaitGroup
		arrive(&wg, s, users(1, 21)...)
		gate.let(5)
		wg.Wait()
		if want := users(1, 21); !slices.Equal(order, want) {
			t.Errorf("committed in the order %v", order)
		}
	})
}

// Under constant load, an order waits for the running batch and the full ones before it, not longer.
func TestCommitter_BoundsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients, batch, commit = 64, 16, 10 * time.Millisecond
		store := newFakeStore()
		store.sell(voucherID, 1_000_000, 1)
		store.placing = func(context.Context, idgen.ID, []*Placement) { time.Sleep(commit) }
		s := openShop(t, store, func(c *Config) { c.BatchMax = batch })
		var wg sync.WaitGroup
		for client := range UserID(clients) {
			wg.Go(func() {
				for i := range UserID(50) {
					start := time.Now()
					wantNoError(t, buy(s, 1+client+i*clients))
					if waited, most := time.Since(start), (clients/batch+1)*commit; waited > most {
						t.Errorf("an order waited %v, want %v at most", waited, most)
					}
				}
			})
		}
		wg.Wait()
		wantAudit(t, store)
	})
}

func TestCommitter_BatchMaxOneCommitsInParallel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.sell(voucherID, 100, 1)
		store.placing = func(context.Context, idgen.ID, []*Placement) { time.Sleep(time.Second) }
		s := openShop(t, store, func(c *Config) { c.BatchMax, c.CommitConcurrency = 1, 4 })
		start := time.Now()
		var wg sync.WaitGroup
		arrive(&wg, s, users(1, 12)...)
		wg.Wait()
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("12 commits of a second took %v, want 3s with 4 side by side", took)
		}
		if n := slices.Max(store.batchSizes()); n != 1 {
			t.Errorf("a transaction had %d orders", n)
		}
	})
}

// hotVouchers runs clients against 20 vouchers with 4 transactions at once, and returns the batches of each voucher.
func hotVouchers(t *testing.T, set func(*Config)) (batches map[idgen.ID]int) {
	store := newFakeStore()
	batches = map[idgen.ID]int{}
	var mu sync.Mutex
	running, most := 0, 0
	store.placing = func(_ context.Context, id idgen.ID, _ []*Placement) {
		mu.Lock()
		running++
		most = max(most, running)
		batches[id]++
		mu.Unlock()
		time.Sleep(time.Millisecond)
		mu.Lock()
		running--
		mu.Unlock()
	}
	s := openShop(t, store, set)
	var wg sync.WaitGroup
	deadline := time.Now().Add(time.Second / 5)
	for v := range idgen.ID(20) {
		store.sell(v+1, 1_000_000, 1)
		clients := 1 + int(v) // from one client to 20
		for client := range clients {
			wg.Go(func() {
				for i := 0; time.Now().Before(deadline); i++ {
					user := UserID(1 + client + i*clients)
					if _, _, err := s.PlaceOrder(t.Context(), PlaceRequest{VoucherID: v + 1, UserID: user}); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	if most != 4 {
		t.Errorf("%d transactions at once, want 4", most)
	}
	wantAudit(t, store)
	return batches
}

func TestCommitter_VouchersShareTheSlotsFairly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		batches := hotVouchers(t, func(c *Config) { c.CommitConcurrency = 4 })
		// 4 slots of 1 ms make 800 batches, 40 for each of 20 vouchers, however many clients it has.
		for id, n := range batches {
			if n < 36 || n > 44 {
				t.Errorf("voucher %d got %d batches, want about 40", id, n)
			}
		}
	})
}
