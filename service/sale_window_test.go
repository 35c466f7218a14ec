package service

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// window puts a voucher on sale from a minute from now, by the database's clock, for a minute.
func window(store *fakeStore) (start, end time.Time) {
	start = store.now().Add(time.Minute)
	end = start.Add(time.Minute)
	store.add(Voucher{ID: voucherID, PriceCents: 1, PayWithin: time.Minute, Terms: Terms{
		Total: 100, Stock: 100, UserLimit: 1, StartsAt: start, EndsAt: end,
	}})
	return start, end
}

// The window follows the database's clock, whatever this machine's clock shows, and is exact at its edges.
func TestSale_Window(t *testing.T) {
	for name, offset := range map[string]time.Duration{
		"same clock": 0, "database ahead": 7 * time.Hour, "database behind": -7 * time.Hour,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newFakeStore()
				store.offset = offset
				start, end := window(store)
				s := openShop(t, store)
				edges := []struct {
					at   time.Time
					code Code
				}{
					{start.Add(-30 * time.Second), CodeNotStarted},
					{start.Add(-time.Millisecond), CodeNotStarted}, // estimated from the previous copy
					{start.Add(-1), CodeNotStarted},
					{start, ""},
					{end.Add(-time.Millisecond), ""},
					{end.Add(-1), ""},
					{end, CodeEnded},
					{end.Add(time.Hour), CodeEnded},
				}
				for i, edge := range edges {
					time.Sleep(edge.at.Sub(store.now()))
					err := buy(s, UserID(i+1))
					wantCode(t, err, edge.code)
					var e *Error
					if !errors.As(err, &e) {
						continue
					}
					if e.Voucher == nil || !e.Voucher.StartsAt.Equal(start) || !e.Voucher.EndsAt.Equal(end) || !e.Voucher.ServerTime.Equal(edge.at) {
						t.Errorf("at %v the refusal carries %+v", edge.at, e.Voucher)
					}
				}
				if n := store.placedOrders(); n != 3 {
					t.Errorf("%d orders", n)
				}
				wantAudit(t, store)
			})
		})
	}
}

// The gate must not refuse a buyer after the start because reading its copy took long.
func TestSale_SlowReadDoesNotDelayTheStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		start, _ := window(store)
		s := openShop(t, store)
		openSale(t, s)
		store.answering = func(method string) {
			if method == "Voucher" {
				time.Sleep(800 * time.Millisecond)
			}
		}
		time.Sleep(start.Add(-900 * time.Millisecond).Sub(store.now()))
		wantCode(t, buy(s, 1), CodeNotStarted) // its copy is that of 900 ms before the start, and fresh until after it
		reads := store.voucherReads.Load()
		time.Sleep(start.Sub(store.now()))
		wantNoError(t, buy(s, 2))
		if store.voucherReads.Load() != reads {
			t.Error("the copy was read again: this test needs the old one")
		}
	})
}

// Before the start the gate refuses without a transaction and without a read of the stock row.
func TestSale_EarlyRequestsCostNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		window(store)
		s := openShop(t, store)
		for u := range UserID(1000) {
			wantCode(t, buy(s, u+1), CodeNotStarted)
		}
		if store.commits.Load() != 0 || store.terms.Load() != 0 || store.voucherReads.Load() > 2 {
			t.Errorf("%d transactions, %d and %d reads", store.commits.Load(), store.terms.Load(), store.voucherReads.Load())
		}
	})
}

func TestSale_UnknownVoucher(t *testing.T) {
	store := newFakeStore()
	s := openShop(t, store)
	for range 100 {
		wantCode(t, buy(s, 1), CodeNotFound)
	}
	s.sales.Range(func(id, _ any) bool {
		t.Errorf("a stranger made the shop remember voucher %v", id)
		return true
	})
}

// Concurrent first requests for a voucher share one read; an unknown voucher leaves no entry.
func TestSale_FirstReadIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.sell(voucherID, 1, 1)
		s := openShop(t, store)
		store.reading = func(context.Context, string) error {
			time.Sleep(time.Millisecond) // so that all callers join
			return nil
		}
		before := store.voucherReads.Load()
		var wg sync.WaitGroup
		for range 1000 {
			wg.Go(func() {
				_, _, err := s.sale(t.Context(), voucherID)
				wantNoError(t, err)
			})
		}
		wg.Wait()
		if n := store.voucherReads.Load() - before; n != 1 {
			t.Errorf("%d reads for a thousand callers", n)
		}
		_, _, err := s.sale(t.Context(), voucherID+1)
		wantCode(t, err, CodeNotFound)
		if _, kept := s.sales.Load(voucherID + 1); kept {
			t.Error("a voucher that does not exist is kept in mind")
		}
	})
}
