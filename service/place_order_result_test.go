package service

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"

	"seckill/service/idgen"
)

func TestPlaceOrder_UnknownCarriesTheRequestID(t *testing.T) {
	for _, key := range []string{"", "mine"} {
		t.Run("key="+key, func(t *testing.T) {
			store := newFakeStore()
			store.sell(voucherID, 5, 1)
			// The commit succeeds and its answer is lost, for all orders of the batch.
			shared := Unknown(errors.New("connection lost"))
			lost := true
			store.placed = func(_ context.Context, _ idgen.ID, batch []*Placement) {
				for _, p := range batch {
					if lost {
						p.Err = shared
					}
				}
			}
			s := openShop(t, store)
			_, _, err := s.PlaceOrder(t.Context(), PlaceRequest{VoucherID: voucherID, UserID: 1, RequestID: key})
			var e *Error
			if !errors.As(err, &e) || e.Code != CodeUnknown || !errors.Is(err, shared.Err) {
				t.Fatal(err)
			}
			if want := cmp.Or(key, "1001"); e.RequestID != want || shared.RequestID != "" {
				t.Errorf("settled by %q, want %q; the verdict that others share carries %q", e.RequestID, want, shared.RequestID)
			}
			lost = false
			order, replayed, err := s.PlaceOrder(t.Context(), PlaceRequest{VoucherID: voucherID, UserID: 1, RequestID: e.RequestID})
			if err != nil || !replayed || order.ID != 1001 {
				t.Errorf("the repeat got %v, %t, %v", order, replayed, err)
			}
			wantAudit(t, store)
		})
	}
}

// The store gets the ids of the answer, each used once, and the terms of the voucher.
func TestPlaceOrder_Placement(t *testing.T) {
	store := newFakeStore()
	store.sell(voucherID, 5, 2)
	var got []Placement
	store.placing = func(_ context.Context, _ idgen.ID, batch []*Placement) { got = append(got, *batch[0]) }
	s := openShop(t, store)
	first, _, err := s.PlaceOrder(t.Context(), PlaceRequest{VoucherID: voucherID, UserID: 1})
	wantNoError(t, err)
	second, _, err := s.PlaceOrder(t.Context(), PlaceRequest{VoucherID: voucherID, UserID: 1, RequestID: "mine"})
	wantNoError(t, err)
	if len(got) != 2 || got[0].Order.RequestID != first.ID.String() || got[1].Order.RequestID != "mine" {
		t.Fatalf("%+v", got)
	}
	if ids := []idgen.ID{got[0].Order.ID, got[0].EventID, got[1].Order.ID, got[1].EventID}; !slices.Equal(ids, []idgen.ID{1001, 1002, 1003, 1004}) {
		t.Errorf("ids %v", ids)
	}
	if first.ID != 1001 || second.ID != 1003 || first.PriceCents != 990 || !first.PayBy.Equal(first.CreatedAt.Add(got[0].PayWithin)) {
		t.Errorf("%+v", first)
	}
	_, _, err = s.PlaceOrder(t.Context(), PlaceRequest{VoucherID: voucherID, UserID: 1, RequestID: "third"})
	wantCode(t, err, CodeAlreadyOrdered)
}

func TestPlaceOrder_WakesTheRelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, woken := newFakeStore(), 0
		store.sell(voucherID, 1, 1)
		s := openShop(t, store, func(c *Config) { c.WakeRelay = func() { woken++ } })
		req := PlaceRequest{VoucherID: voucherID, UserID: 1, RequestID: "mine"}
		_, _, err := s.PlaceOrder(t.Context(), req)
		wantNoError(t, err)
		synctest.Wait()
		if woken != 1 {
			t.Errorf("woken %d times by an order", woken)
		}
		_, replayed, err := s.PlaceOrder(t.Context(), req)
		if err != nil || !replayed {
			t.Error(replayed, err)
		}
		wantCode(t, buy(s, 2), CodeSoldOut)
		synctest.Wait()
		if woken != 1 {
			t.Errorf("woken %d times: a replay and a refusal write nothing", woken)
		}
	})
}
