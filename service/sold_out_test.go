package service

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// soldOut opens a shop whose gate is closed: user 1 has bought the only unit, and user 2 was refused by the commit.
func soldOut(t testing.TB, store *fakeStore, set ...func(*Config)) *Shop {
	t.Helper()
	store.sell(voucherID, 1, 1)
	s := openShop(t, store, set...)
	wantNoError(t, buy(s, 1))
	wantCode(t, buy(s, 2), CodeSoldOut)
	return s
}

func TestGate_RefusalNeedsNoTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		s := soldOut(t, store)
		before := store.commits.Load()
		for u := range UserID(100) {
			wantCode(t, buy(s, 10+u), CodeSoldOut)
		}
		if n := store.commits.Load() - before; n != 0 {
			t.Errorf("%d transactions for 100 refusals", n)
		}
		if n := store.standings.Load(); n != 0 {
			t.Errorf("%d look-ups of orders for users who have none", n)
		}
	})
}

func TestGate_SoldOutThenReturned(t *testing.T) {
	returns := map[string]func(t *testing.T, s *Shop){
		"cancelled": func(t *testing.T, s *Shop) {
			orders, err := s.Orders(t.Context(), 1, 0, 1)
			wantNoError(t, err)
			_, err = s.CancelOrder(t.Context(), 1, orders[0].ID)
			wantNoError(t, err)
		},
		"expired": func(t *testing.T, s *Shop) {
			time.Sleep(16 * time.Minute)
			if n, err := s.ExpireOrders(t.Context()); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		},
		"added": func(t *testing.T, s *Shop) {
			_, err := s.AddStock(t.Context(), voucherID, 1, "more")
			wantNoError(t, err)
		},
	}
	for name, give := range returns {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newFakeStore()
				ids := &countedIDs{}
				shared := func(c *Config) { c.IDs = ids }
				here := soldOut(t, store, shared)
				there := openShop(t, store, shared)
				wantCode(t, buy(there, 3), CodeSoldOut)
				wantCode(t, buy(there, 3), CodeSoldOut)
				give(t, here)
				wantNoError(t, buy(there, 3)) // by an instance that does not know
				wantCode(t, buy(here, 4), CodeSoldOut)
				wantAudit(t, store)
			})
		})
	}
}

// A request that arrives during a read waits for the next one: the read may be older than the request.
func TestGate_RefusalIsNotOlderThanItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		s := soldOut(t, store)
		onItsWay := make(chan struct{})
		first := true
		store.answering = func(method string) {
			if method == "Terms" && first {
				first = false
				<-onItsWay
			}
		}
		var wg sync.WaitGroup
		wg.Go(func() { wantCode(t, buy(s, 3), CodeSoldOut) }) // has seen no stock
		synctest.Wait()
		_, err := s.AddStock(t.Context(), voucherID, 1, "more")
		wantNoError(t, err)
		wg.Go(func() { wantNoError(t, buy(s, 4)) })
		synctest.Wait()
		close(onItsWay)
		wg.Wait()
		wantAudit(t, store)
	})
}

// Negative control: a gate that answers from an older read is noticed by the histories.
func TestGate_StaleRefusalsAreNoticed(t *testing.T) {
	found := violationsWith(t, honest, func(s *saleState) {
		var mu sync.Mutex
		var kept *stockView
		var read time.Time
		s.soldOut.read = func(known *buyers) (*stockView, error) {
			mu.Lock()
			defer mu.Unlock()
			if kept != nil && time.Since(read) < 20*time.Millisecond {
				return kept, nil
			}
			w, err := s.readStock(known)
			kept, read = w, time.Now()
			return w, err
		}
	})
	if found == "" {
		t.Error("nobody noticed a gate whose views are 20 ms old")
	}
	t.Log(found)
}

func TestGate_RefusalsShareReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		s := soldOut(t, store)
		store.reading = func(context.Context, string) error { time.Sleep(200 * time.Microsecond); return nil }
		before := store.terms.Load()
		var wg sync.WaitGroup
		for u := range UserID(10_000) {
			wg.Go(func() { wantCode(t, buy(s, 10+u), CodeSoldOut) })
		}
		wg.Wait()
		// The first request begins a read, all others share the next.
		if n := store.terms.Load() - before; n > 2 {
			t.Errorf("10,000 refusals cost %d reads", n)
		}
	})
}

func TestGate_ReadsArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		s := soldOut(t, store)
		time.Sleep(time.Second)
		before, start := store.terms.Load(), time.Now()
		var wg sync.WaitGroup
		for u := range UserID(50) {
			wg.Go(func() {
				for time.Since(start) < 100*time.Millisecond {
					wantCode(t, buy(s, 10+u), CodeSoldOut)
				}
			})
		}
		wg.Wait()
		want := int64(100 * time.Millisecond / readPace)
		if n := store.terms.Load() - before; n < want-5 || n > want+2 {
			t.Errorf("%d reads in 100 ms, want one every %v, %d", n, readPace, want)
		}
	})
}

func TestGate_IdleWithoutRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		s := soldOut(t, store)
		wantCode(t, buy(s, 3), CodeSoldOut)
		time.Sleep(time.Second)
		before := store.terms.Load()
		time.Sleep(time.Hour / 2)
		if n := store.terms.Load() - before; n != 0 {
			t.Errorf("%d reads while nobody asked", n)
		}
		sale, _, err := s.sale(t.Context(), voucherID)
		wantNoError(t, err)
		if sale.soldOut.busy() {
			t.Error("its goroutine is still there")
		}
	})
}

// When there is stock again, the gate is open and needs no read until the voucher is sold out again.
func TestGate_OpensAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		s := soldOut(t, store)
		_, err := s.AddStock(t.Context(), voucherID, 10, "more")
		wantNoError(t, err)
		wantNoError(t, buy(s, 3))
		before := store.terms.Load()
		for u := range UserID(9) {
			wantNoError(t, buy(s, 4+u))
		}
		if n := store.terms.Load() - before; n != 0 {
			t.Errorf("%d reads by an open gate", n)
		}
		wantCode(t, buy(s, 20), CodeSoldOut)
	})
}

func TestGate_ReadFails(t *testing.T) {
	down := Unavailable(errors.New("connection refused"))
	failures := map[string]struct {
		fail func(ctx context.Context, method string) error
		code Code
	}{
		"error": {func(context.Context, string) error { return down }, CodeUnavailable},
		"panic": {func(context.Context, string) error { panic("a defect") }, CodeInternal},
		"silence": {func(ctx context.Context, _ string) error {
			<-ctx.Done()
			return Unavailable(ctx.Err())
		}, CodeUnavailable},
	}
	for name, f := range failures {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newFakeStore()
				s := soldOut(t, store, func(c *Config) { c.VoucherTTL = time.Minute })
				store.reading = func(ctx context.Context, method string) error { return f.fail(ctx, method) }
				var wg sync.WaitGroup
				for u := range UserID(20) {
					wg.Go(func() { wantCode(t, buy(s, 10+u), f.code) })
				}
				wg.Wait()
				store.reading = nil
				wantCode(t, buy(s, 3), CodeSoldOut)
				wantCode(t, buy(s, 1), CodeAlreadyOrdered)
			})
		})
	}
}

func TestGate_WaitEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		s := soldOut(t, store)
		store.reading = func(context.Context, string) error { time.Sleep(time.Second); return nil }
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, _, err := s.PlaceOrder(ctx, PlaceRequest{VoucherID: voucherID, UserID: 3})
		wantCode(t, err, CodeUnavailable)
		if took := time.Since(start); took != 10*time.Millisecond {
			t.Errorf("answered after %v", took)
		}
		time.Sleep(2 * time.Second) // the read ends
	})
}
