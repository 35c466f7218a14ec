package service

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"seckill/service/idgen"
)

func TestGate_SoldOutReturnsExistingOrder(t *testing.T) {
	afterwards := map[string]struct {
		pass    time.Duration
		refusal Code
	}{
		"sold out": {0, CodeSoldOut},
		"ended":    {2 * time.Hour, CodeEnded},
	}
	for name, then := range afterwards {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newFakeStore()
				store.sell(voucherID, 2, 1)
				store.sell(8, 1, 1)
				s := openShop(t, store)
				place := func(v idgen.ID, u UserID, key string) (Order, bool, error) {
					return s.PlaceOrder(t.Context(), PlaceRequest{VoucherID: v, UserID: u, RequestID: key})
				}
				first, _, err := place(voucherID, 1, "key")
				wantNoError(t, err)
				_, _, err = place(8, 2, "elsewhere")
				wantNoError(t, err)
				_, _, err = place(voucherID, 2, "here")
				wantNoError(t, err)
				time.Sleep(then.pass)
				_, _, err = place(voucherID, 3, "")
				wantCode(t, err, then.refusal)

				again, replayed, err := place(voucherID, 1, "key")
				if err != nil || !replayed || again.ID != first.ID {
					t.Errorf("the same request got %v, %t, %v", again, replayed, err)
				}
				_, replayed, err = place(voucherID, 1, "another")
				var e *Error
				if !errors.As(err, &e) || e.Code != CodeAlreadyOrdered || e.Order == nil || e.Order.ID != first.ID || replayed {
					t.Errorf("another request got %v", err)
				}
				_, _, err = place(voucherID, 2, "elsewhere")
				wantCode(t, err, CodeKeyReused)

				_, err = s.CancelOrder(t.Context(), 1, first.ID)
				wantNoError(t, err)
				if then.refusal == CodeEnded { // else the unit is there to be bought again
					closed, replayed, err := place(voucherID, 1, "key")
					if err != nil || !replayed || closed.Status != Closed {
						t.Errorf("the same request after the cancellation got %v, %t, %v", closed, replayed, err)
					}
					_, _, err = place(voucherID, 1, "another")
					wantCode(t, err, CodeEnded)
				}
			})
		})
	}
}

// An order of another instance is not in the cached list; the counter of placed orders shows that.
func TestGate_SoldOutBuyerOfAnotherInstance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		ids := &countedIDs{}
		shared := func(c *Config) { c.IDs = ids }
		here := soldOut(t, store, shared)
		there := openShop(t, store, shared)
		wantCode(t, buy(here, 3), CodeSoldOut) // the list is cached now
		lists := store.buyersReads.Load()
		_, err := there.AddStock(t.Context(), voucherID, 1, "more")
		wantNoError(t, err)
		wantNoError(t, buy(there, 4))
		wantCode(t, buy(here, 4), CodeAlreadyOrdered)
		wantCode(t, buy(here, 3), CodeSoldOut)
		if n := store.buyersReads.Load() - lists; n != 1 {
			t.Errorf("%d lists were read, want one", n)
		}
	})
}

// An instance that sells units itself needs no new list.
func TestBuyers_OwnBuyersAreAdded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		s := soldOut(t, store)
		wantCode(t, buy(s, 3), CodeSoldOut)
		lists := store.buyersReads.Load()
		_, err := s.AddStock(t.Context(), voucherID, 5, "more")
		wantNoError(t, err)
		for u := range UserID(5) {
			wantNoError(t, buy(s, 10+u))
		}
		wantCode(t, buy(s, 20), CodeSoldOut)
		wantCode(t, buy(s, 20), CodeSoldOut)
		wantCode(t, buy(s, 12), CodeAlreadyOrdered)
		if n := store.buyersReads.Load() - lists; n != 0 {
			t.Errorf("%d lists were read", n)
		}
	})
}

// The race that the comment on buyers.add describes: an order is in the list that is read, and its instance adds it later.
// Counting it twice would hide the order of user 6, which the list lacks.
func TestBuyers_OrderInTheListCountsOnce(t *testing.T) {
	b := &buyers{sorted: []UserID{1, 5}, placed: 1} // 5 committed after the counter was read and before the list was
	b.add(5)
	b.add(5)
	if b.covered() != 1 {
		t.Errorf("the set claims to cover %d orders", b.covered())
	}
	b.add(7)
	b.add(7) // a second order of user 7, or the same one twice
	if b.covered() != 2 {
		t.Errorf("the set claims to cover %d orders", b.covered())
	}
	for user, want := range map[UserID]bool{1: true, 5: true, 7: true, 6: false, 0: false} {
		if b.has(user) != want {
			t.Errorf("has(%d) = %t", user, !want)
		}
	}
	var none *buyers
	if none.covered() != -1 {
		t.Error("no set covers no order, not even none of them")
	}
}

// The covered orders are counted before the stock row is read. If they were counted later, an order of this instance from
// in between would hide that of user 4, which the list lacks, and user 4 would get "sold out".
func TestGate_OrderCommitsDuringTheRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, ids := newFakeStore(), &countedIDs{}
		here := soldOut(t, store, func(c *Config) { c.IDs, c.BatchMax = ids, 1 })
		there := openShop(t, store, func(c *Config) { c.IDs = ids })
		wantCode(t, buy(here, 3), CodeSoldOut) // the list is cached now
		add := func(request string) {
			_, err := there.AddStock(t.Context(), voucherID, 1, request)
			wantNoError(t, err)
		}
		commit, answer := make(chan struct{}), make(chan struct{})
		store.placing = func(_ context.Context, _ idgen.ID, batch []*Placement) {
			if batch[0].Order.UserID == 5 {
				<-commit
			}
		}
		var wg sync.WaitGroup
		add("first")
		wg.Go(func() { wantNoError(t, buy(here, 5)) })
		time.Sleep(2 * readPace) // it has passed the gate, and commits later
		synctest.Wait()
		wantNoError(t, buy(there, 4))
		wantCode(t, buy(here, 6), CodeSoldOut) // by the commit, which closes the gate

		blocked := false
		store.answering = func(method string) {
			if method == "Terms" && !blocked {
				blocked = true
				<-answer
			}
		}
		wg.Go(func() { wantCode(t, buy(here, 4), CodeAlreadyOrdered) })
		time.Sleep(2 * readPace) // its read begins, and sees no stock
		synctest.Wait()
		add("second")
		close(commit)
		synctest.Wait()
		if n := len(store.live(voucherID, 5)); n != 1 || !blocked {
			t.Errorf("user 5 has %d orders, the read is on its way: %t", n, blocked)
		}
		close(answer)
		wg.Wait()
		wantAudit(t, store)
	})
}

// Negative control: a list whose counter is read after it claims orders that it lacks.
func TestBuyers_IncompleteListIsNoticed(t *testing.T) {
	found := violationsWith(t, func(f *fakeStore) OrderStore { return boastfulStore{f} }, func(*saleState) {})
	if found == "" {
		t.Error("nobody noticed a list of buyers that claims orders which it lacks")
	}
	t.Log(found)
}

// boastfulStore reads the counter after the list.
type boastfulStore struct{ *fakeStore }

func (b boastfulStore) Buyers(ctx context.Context, id idgen.ID) ([]UserID, int64, error) {
	users, _, err := b.fakeStore.Buyers(ctx, id)
	if err != nil {
		return nil, 0, err
	}
	time.Sleep(3 * time.Millisecond)
	terms, _, err := b.Terms(ctx, id)
	return users, terms.Placed, err
}

// While lists are too expensive to be read again, or fail, each request looks for its own order.
func TestBuyers_LongListsAreReadSeldom(t *testing.T) {
	for name, err := range map[string]error{"slow": nil, "failing": ErrUnavailable} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newFakeStore()
				ids := &countedIDs{}
				shared := func(c *Config) { c.IDs = ids }
				here := soldOut(t, store, shared)
				there := openShop(t, store, shared)
				store.reading = func(_ context.Context, method string) error {
					if method != "Buyers" {
						return nil
					}
					time.Sleep(time.Second)
					return err
				}
				wantCode(t, buy(here, 1), CodeAlreadyOrdered) // reads the list, or fails to
				_, addErr := there.AddStock(t.Context(), voucherID, 1, "more")
				wantNoError(t, addErr)
				wantNoError(t, buy(there, 4))

				before, start := store.buyersReads.Load(), time.Now()
				for time.Since(start) < 9*time.Second {
					wantCode(t, buy(here, 4), CodeAlreadyOrdered)
					wantCode(t, buy(here, 3), CodeSoldOut)
					time.Sleep(100 * time.Millisecond)
				}
				if n := store.buyersReads.Load() - before; n != 0 {
					t.Errorf("%d lists of a second were read within ten", n)
				}
				time.Sleep(2 * time.Second)
				wantCode(t, buy(here, 3), CodeSoldOut)
				if n := store.buyersReads.Load() - before; n != 1 {
					t.Errorf("%d lists were read after ten seconds, want one", n)
				}
			})
		})
	}
}

// A user with several orders makes the count too low: the list is read again, and all answers are correct.
func TestBuyers_SeveralOrdersOfOneUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.sell(voucherID, 3, 3)
		s := openShop(t, store)
		for range 3 {
			wantNoError(t, buy(s, 1))
		}
		wantCode(t, buy(s, 2), CodeSoldOut)
		wantCode(t, buy(s, 2), CodeSoldOut)
		wantCode(t, buy(s, 1), CodeAlreadyOrdered)
		wantAudit(t, store)
	})
}
