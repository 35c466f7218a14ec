package service

import (
	"context"
	"strings"
	"testing"

	"seckill/service/idgen"
)

// order places one order for user 1 and returns the shop; woken counts the calls that wake the relay.
func orderOf(t *testing.T, store *fakeStore, woken *int) (*Shop, *countedIDs, Order) {
	t.Helper()
	store.sell(voucherID, 5, 1)
	ids := &countedIDs{}
	s := openShop(t, store, func(c *Config) { c.IDs = ids })
	o, _, err := s.PlaceOrder(t.Context(), PlaceRequest{VoucherID: voucherID, UserID: 1})
	wantNoError(t, err)
	wantNoError(t, s.Close(context.Background())) // after it, only the test counts
	s.cfg.WakeRelay = func() { *woken++ }
	return s, ids, o
}

func TestChangeOrder(t *testing.T) {
	type step struct {
		name   string
		do     func(s *Shop, id idgen.ID) (Order, error)
		code   Code
		status Status
		woken  int // since the previous step
	}
	ctx := context.Background()
	pay := func(user UserID, payment string) func(*Shop, idgen.ID) (Order, error) {
		return func(s *Shop, id idgen.ID) (Order, error) { return s.PayOrder(ctx, user, id, payment) }
	}
	cancel := func(user UserID) func(*Shop, idgen.ID) (Order, error) {
		return func(s *Shop, id idgen.ID) (Order, error) { return s.CancelOrder(ctx, user, id) }
	}
	ways := map[string][]step{
		"paid": {
			{"by somebody else", pay(2, "p1"), CodeNotFound, 0, 0},
			{"pay", pay(1, "p1"), "", Paid, 1},
			{"pay again", pay(1, "p1"), "", Paid, 1},
			{"pay without money", pay(1, ""), "", Paid, 1},
			{"cancel", cancel(1), CodeOrderPaid, Paid, 0},
			{"pay twice", pay(1, "p2"), CodeRefundDue, Paid, 1},
		},
		"cancelled": {
			{"by somebody else", cancel(2), CodeNotFound, 0, 0},
			{"cancel", cancel(1), "", Closed, 1},
			{"cancel again", cancel(1), "", Closed, 1},
			{"pay without money", pay(1, ""), CodeOrderClosed, Closed, 0},
			{"pay", pay(1, "p1"), CodeRefundDue, Closed, 1},
			{"pay again", pay(1, "p1"), CodeRefundDue, Closed, 1},
		},
		"malformed": {
			{"space", pay(1, "p 1"), CodeInvalid, 0, 0},
			{"newline", pay(1, "p1\n"), CodeInvalid, 0, 0},
			{"too long", pay(1, strings.Repeat("p", 65)), CodeInvalid, 0, 0},
			{"long", pay(1, strings.Repeat("p", 64)), "", Paid, 1},
		},
	}
	for name, steps := range ways {
		t.Run(name, func(t *testing.T) {
			store, woken := newFakeStore(), 0
			s, _, o := orderOf(t, store, &woken)
			for _, step := range steps {
				woken = 0
				got, err := step.do(s, o.ID)
				if CodeOf(err) != step.code || got.Status != step.status || woken != step.woken {
					t.Errorf("%s: %v, %v, woken %d times; want %q, %v, %d", step.name, err, got.Status, woken, step.code, step.status, step.woken)
				}
			}
			wantAudit(t, store)
		})
	}
}

func TestChangeOrder_WithoutAnID(t *testing.T) {
	store, woken := newFakeStore(), 0
	s, ids, o := orderOf(t, store, &woken)
	ids.err = idgen.ErrExhausted
	_, err := s.PayOrder(t.Context(), 1, o.ID, "p1")
	wantCode(t, err, CodeUnavailable)
	_, err = s.CancelOrder(t.Context(), 1, o.ID)
	wantCode(t, err, CodeUnavailable)
	if stands, _ := s.Order(t.Context(), 1, o.ID); stands.Status != Pending || woken != 0 {
		t.Errorf("%v, woken %d times", stands.Status, woken)
	}
}

func TestOrder_OfAnotherUser(t *testing.T) {
	store := newFakeStore()
	store.sell(voucherID, 200, 100)
	s := openShop(t, store)
	var last Order
	for range 100 {
		var err error
		last, _, err = s.PlaceOrder(t.Context(), PlaceRequest{VoucherID: voucherID, UserID: 1})
		wantNoError(t, err)
	}
	_, err := s.Order(t.Context(), 2, last.ID)
	wantCode(t, err, CodeNotFound)
	_, err = s.Order(t.Context(), 1, 1)
	wantCode(t, err, CodeNotFound)
	if o, err := s.Order(t.Context(), 1, last.ID); err != nil || o != last {
		t.Error(o, err)
	}
	seen := map[idgen.ID]bool{}
	for before := idgen.ID(0); ; {
		page, err := s.Orders(t.Context(), 1, before, 30)
		wantNoError(t, err)
		for _, o := range page {
			if seen[o.ID] || before != 0 && o.ID >= before {
				t.Errorf("order %v is on two pages, or out of order", o.ID)
			}
			seen[o.ID], before = true, o.ID
		}
		if len(page) < 30 {
			break
		}
	}
	if len(seen) != 100 {
		t.Errorf("%d orders on all pages", len(seen))
	}
	if page, _ := s.Orders(t.Context(), 1, 0, 1_000_000); len(page) > MaxPage {
		t.Errorf("a page of %d", len(page))
	}
	if page, _ := s.Orders(t.Context(), 2, 0, 10); len(page) != 0 {
		t.Errorf("user 2 sees %v", page)
	}
}

// visible is the rule for both keys, written differently than in the code.
func visible(s string) bool {
	return s != "" && len(s) <= MaxRequestID && strings.IndexFunc(s, func(r rune) bool { return r < 33 || r > 126 }) < 0
}

func FuzzKeys(f *testing.F) {
	for _, s := range []string{"", "a", "~", "!", " ", "a b", "\x7f", "é", "a\x00", strings.Repeat("k", 64), strings.Repeat("k", 65)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for field, err := range map[string]error{"Idempotency-Key": ValidRequestID(s), "payment_id": validReference("payment_id", s)} {
			if (err == nil) != visible(s) {
				t.Fatalf("%s %q: %v", field, s, err)
			}
			if e, ok := err.(*Error); err != nil && (!ok || e.Code != CodeInvalid || e.Field != field) {
				t.Fatalf("%s %q: %#v", field, s, err)
			}
		}
	})
}
