package service

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"seckill/service/idgen"
)

// history is a random sale: two instances over one slow database, users who buy, repeat and cancel, an admin who adds
// stock, unpaid orders that expire. Each answer is compared with the states of the database between request and answer.
type history struct {
	store *fakeStore
	shops [2]*Shop

	mu         sync.Mutex
	rng        *rand.Rand
	violations []string
	outcomes   map[Code]int
}

const historyUsers = 24

func newHistory(t *testing.T, seed uint64, orders func(*fakeStore) OrderStore) *history {
	h := &history{store: newFakeStore(), rng: rand.New(rand.NewPCG(seed, 0)), outcomes: map[Code]int{}}
	h.store.sell(voucherID, 4, 1+h.intn(2))
	h.store.reading = func(context.Context, string) error { h.pause(3); return nil }
	h.store.answering = func(string) { h.pause(3) }
	h.store.listing = func() { h.pause(3) }
	h.store.placing = func(context.Context, idgen.ID, []*Placement) { h.pause(4) }
	ids := &countedIDs{}
	for i := range h.shops {
		h.shops[i] = openShop(t, h.store, func(c *Config) {
			c.Orders, c.BatchMax, c.IDs = orders(h.store), 1+h.intn(8), ids
			c.VoucherTTL = 20 * time.Millisecond
		})
	}
	return h
}

func (h *history) intn(n int) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rng.IntN(n)
}

// pause takes up to ms milliseconds, in steps of a microsecond.
func (h *history) pause(ms int) { time.Sleep(time.Duration(h.intn(ms*1000)) * time.Microsecond) }

func (h *history) violated(format string, args ...any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.violations = append(h.violations, fmt.Sprintf(format, args...))
}

// run runs all users, and finally checks that the remaining stock can be bought.
func (h *history) run(t *testing.T) {
	var wg sync.WaitGroup
	for u := range UserID(historyUsers) {
		wg.Go(func() {
			for range 25 {
				h.act(u + 1)
				h.pause(12)
			}
		})
	}
	wg.Go(func() {
		for i := range 3 {
			h.pause(100)
			_, err := h.shops[h.intn(2)].AddStock(t.Context(), voucherID, 1, fmt.Sprint(i))
			wantNoError(t, err)
		}
	})
	wg.Wait()
	h.buyOut()
	wantAudit(t, h.store)
}

// act is one step of a user: to cancel an order, or to buy.
func (h *history) act(user UserID) {
	ctx := context.Background()
	shop := h.shops[h.intn(2)]
	if before := h.liveOf(user); len(before) > 0 && h.intn(3) == 0 {
		if _, err := shop.CancelOrder(ctx, user, before[0].ID); err != nil {
			h.violated("user %d cannot cancel: %v", user, err)
		}
		return
	}
	req := PlaceRequest{VoucherID: voucherID, UserID: user}
	if h.intn(2) == 0 {
		req.RequestID = fmt.Sprint("key", h.intn(3))
	}
	h.place(shop, req)
}

// place sends a request and checks its answer. Only its user cancels a user's orders, so orders that existed before the
// request existed during all of it.
func (h *history) place(shop *Shop, req PlaceRequest) {
	before, from := h.liveOf(req.UserID), h.moment()
	known, repeated := h.byRequest(req)
	order, replayed, err := shop.PlaceOrder(context.Background(), req)
	limit := h.limit()
	h.mu.Lock()
	h.outcomes[CodeOf(err)]++
	h.mu.Unlock()
	switch {
	case repeated && (err != nil || !replayed || order.ID != known.ID):
		h.violated("user %d repeated %q and got %v, %t, %v instead of order %v", req.UserID, req.RequestID, order.ID, replayed, err, known.ID)
	case repeated:
	case errors.Is(err, ErrSoldOut) && len(before) >= limit:
		h.violated("user %d holds order %v and was told: %v", req.UserID, before[0].ID, err)
	case errors.Is(err, ErrSoldOut) && !h.soldOutSince(from):
		h.violated("user %d was told: %v, but there was stock all the while", req.UserID, err)
	case err == nil && (replayed || len(before) >= limit):
		h.violated("user %d holds %d and was sold another (replayed: %t)", req.UserID, len(before), replayed)
	case err != nil && CodeOf(err) != CodeSoldOut && CodeOf(err) != CodeAlreadyOrdered:
		h.violated("user %d: %v", req.UserID, err)
	case CodeOf(err) == CodeAlreadyOrdered && len(before) < limit:
		h.violated("user %d holds %d of %d and was told: %v", req.UserID, len(before), limit, err)
	}
}

// buyOut buys the remaining units, through both instances.
func (h *history) buyOut() {
	for user := UserID(1000); h.stockNow() > 0; user++ {
		left := h.stockNow()
		for _, shop := range h.shops {
			if _, _, err := shop.PlaceOrder(context.Background(), PlaceRequest{VoucherID: voucherID, UserID: user}); err != nil && h.stockNow() == left {
				h.violated("%d units are left and user %d was told: %v", left, user, err)
				return
			}
			user++
		}
	}
}

func (h *history) liveOf(user UserID) (orders []Order) {
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	for _, o := range h.store.live(voucherID, user) {
		orders = append(orders, *o)
	}
	return orders
}

func (h *history) byRequest(req PlaceRequest) (Order, bool) {
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	o, ok := h.store.requests[requestKey{req.UserID, req.RequestID}]
	if !ok {
		return Order{}, false
	}
	return *o, true
}

func (h *history) limit() int {
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	return h.store.vouchers[voucherID].UserLimit
}

func (h *history) stockNow() int64 {
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	return h.store.vouchers[voucherID].Stock
}

func (h *history) moment() int {
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	return len(h.store.stocks) - 1
}

// soldOutSince reports whether there was a moment without stock since the given one.
func (h *history) soldOutSince(from int) bool {
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	for _, stock := range h.store.stocks[from:] {
		if stock == 0 {
			return true
		}
	}
	return false
}

func honest(f *fakeStore) OrderStore { return f }

// To repeat a failure, run its seed.
func TestShop_RandomHistories(t *testing.T) {
	outcomes := map[Code]int{}
	for i := range uint64(60) {
		seed := rand.Uint64()
		if i < 20 {
			seed = i // these are the same in each run
		}
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHistory(t, seed, honest)
				h.run(t)
				for _, v := range h.violations {
					t.Error(v)
				}
				for code, n := range h.outcomes {
					outcomes[code] += n
				}
			})
		})
	}
	if outcomes[CodeSoldOut] == 0 || outcomes[CodeAlreadyOrdered] == 0 || outcomes[""] == 0 {
		t.Errorf("the histories do not cover every answer: %v", outcomes)
	}
	t.Log(outcomes)
}

// violationsWith runs histories with a defect until one of them shows a violation, and returns it.
func violationsWith(t *testing.T, orders func(*fakeStore) OrderStore, plant func(*saleState)) (found string) {
	for seed := range uint64(400) {
		synctest.Test(t, func(t *testing.T) {
			h := newHistory(t, seed, orders)
			for _, shop := range h.shops {
				sale, _, err := shop.sale(t.Context(), voucherID)
				wantNoError(t, err)
				plant(sale)
			}
			h.run(t)
			if len(h.violations) > 0 {
				found = h.violations[0]
			}
		})
		if found != "" {
			return found
		}
	}
	return ""
}
