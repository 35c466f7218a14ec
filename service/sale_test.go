package service

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func openSale(t testing.TB, s *Shop) *saleState {
	t.Helper()
	sale, _, err := s.sale(t.Context(), voucherID)
	wantNoError(t, err)
	sale.forget() // the lookup has cached a copy
	return sale
}

func TestSale_VoucherIsReadOncePerTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.sell(voucherID, 1, 1)
		s := openShop(t, store, func(c *Config) { c.VoucherTTL = time.Second })
		sale := openSale(t, s)
		store.reading = func(context.Context, string) error { time.Sleep(10 * time.Millisecond); return nil }
		for range 3 {
			before := store.voucherReads.Load()
			var wg sync.WaitGroup
			for range 1000 {
				wg.Go(func() {
					c, err := sale.voucher(t.Context())
					if err != nil || c.Title != "Coffee" {
						t.Error(c, err)
					}
				})
			}
			wg.Wait()
			_, err := sale.voucher(t.Context())
			wantNoError(t, err)
			if n := store.voucherReads.Load() - before; n != 1 {
				t.Errorf("%d reads for a thousand callers", n)
			}
			time.Sleep(time.Second)
		}
	})
}

func TestSale_SharedReadFails(t *testing.T) {
	failures := map[string]struct {
		fail func(ctx context.Context) error
		code Code
	}{
		"error":   {func(context.Context) error { return ErrUnavailable }, CodeUnavailable},
		"panic":   {func(context.Context) error { panic("a defect") }, CodeInternal},
		"silence": {func(ctx context.Context) error { <-ctx.Done(); return Unavailable(ctx.Err()) }, CodeUnavailable},
	}
	for name, f := range failures {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newFakeStore()
				store.sell(voucherID, 1, 1)
				s := openShop(t, store)
				sale := openSale(t, s)
				store.reading = func(ctx context.Context, _ string) error {
					time.Sleep(time.Millisecond) // so that all callers join
					return f.fail(ctx)
				}
				before, start := store.voucherReads.Load(), time.Now()
				var wg sync.WaitGroup
				for range 100 {
					wg.Go(func() {
						_, err := sale.voucher(t.Context())
						wantCode(t, err, f.code)
					})
				}
				wg.Wait()
				if n := store.voucherReads.Load() - before; n != 1 {
					t.Errorf("%d reads failed for a hundred callers", n)
				}
				if took := time.Since(start); took > readTimeout {
					t.Errorf("the failure took %v", took)
				}
				store.reading = nil
				_, err := sale.voucher(t.Context())
				wantNoError(t, err)
			})
		})
	}
}

// A caller whose context ends does not stop the shared read.
func TestSale_ContextEndsDuringASharedRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.sell(voucherID, 1, 1)
		s := openShop(t, store)
		sale := openSale(t, s)
		store.reading = func(ctx context.Context, _ string) error {
			time.Sleep(10 * time.Millisecond)
			return ctx.Err()
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := sale.voucher(ctx)
			wantCode(t, err, CodeUnavailable)
			if !errors.Is(err, gone) {
				t.Errorf("%v hides why", err)
			}
		})
		synctest.Wait()
		wg.Go(func() {
			_, err := sale.voucher(t.Context())
			wantNoError(t, err)
		})
		synctest.Wait()
		cancel(gone)
		wg.Wait()
	})
}

func TestSale_OwnChangesAreSeenAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.sell(voucherID, 10, 1)
		s := openShop(t, store)
		wantNoError(t, buy(s, 1))
		price := int64(500)
		v, err := s.ChangeVoucher(t.Context(), voucherID, VoucherChange{PriceCents: &price})
		if err != nil || v.PriceCents != 500 {
			t.Fatal(v, err)
		}
		order, _, err := s.PlaceOrder(t.Context(), PlaceRequest{VoucherID: voucherID, UserID: 2})
		if err != nil || order.PriceCents != 500 {
			t.Errorf("sold at %d (%v) after the price was changed to 500", order.PriceCents, err)
		}
		_, err = s.EndSale(t.Context(), voucherID)
		wantNoError(t, err)
		before := store.commits.Load()
		wantCode(t, buy(s, 3), CodeEnded)
		if store.commits.Load() != before {
			t.Error("the gate did not know that the sale is over")
		}
	})
}

// A read that began before a change must not be cached after it.
func TestSale_ChangeOvertakesARead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.sell(voucherID, 10, 1)
		s := openShop(t, store)
		sale := openSale(t, s)
		onItsWay := make(chan struct{})
		first := true
		store.answering = func(string) {
			if first {
				first = false
				<-onItsWay
			}
		}
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = sale.voucher(t.Context()) })
		synctest.Wait()
		title := "Tea"
		_, err := s.ChangeVoucher(t.Context(), voucherID, VoucherChange{Title: &title})
		wantNoError(t, err)
		close(onItsWay)
		wg.Wait()
		if c, err := sale.voucher(t.Context()); err != nil || c.Title != title {
			t.Errorf("%q is shown after the title was changed to %q (%v)", c.Title, title, err)
		}
	})
}

func TestSale_OtherInstanceFollowsWithinTheTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.sell(voucherID, 10, 1)
		there := openShop(t, store, func(c *Config) { c.VoucherTTL = time.Second })
		sale := openSale(t, there)
		_, err := sale.voucher(t.Context())
		wantNoError(t, err)
		title := "Tea"
		_, err = openShop(t, store).ChangeVoucher(t.Context(), voucherID, VoucherChange{Title: &title})
		wantNoError(t, err)
		if c, _ := sale.voucher(t.Context()); c.Title != "Coffee" {
			t.Errorf("%q: the copy was not kept", c.Title)
		}
		time.Sleep(time.Second)
		if c, _ := sale.voucher(t.Context()); c.Title != title {
			t.Errorf("after the TTL: %q", c.Title)
		}
	})
}
