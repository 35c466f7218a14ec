package service

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"seckill/service/idgen"
)

// unpaid places n orders of one voucher that are never paid.
func unpaid(t testing.TB, s *Shop, n int) {
	t.Helper()
	for u := range UserID(n) {
		wantNoError(t, buy(s, u+1))
	}
}

func TestExpireOrders_InBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 2*expireBatch + 50
		store, seen, woken := newFakeStore(), &recorder{}, 0
		store.sell(voucherID, n+10, 1)
		var calls []string
		store.reading = func(_ context.Context, method string) error { calls = append(calls, method); return nil }
		s := openShop(t, store, func(c *Config) { c.Observer, c.WakeRelay = seen, func() { woken++ } })
		unpaid(t, s, n)
		wantNoError(t, buy(s, n+1))
		synctest.Wait() // also for the last wake-up of the relay
		orders, err := s.Orders(t.Context(), n+1, 0, 1)
		wantNoError(t, err)
		_, err = s.PayOrder(t.Context(), n+1, orders[0].ID, "")
		wantNoError(t, err)

		time.Sleep(15*time.Minute - 1)
		if n, err := s.ExpireOrders(t.Context()); n != 0 || err != nil {
			t.Errorf("%d expired before their time (%v)", n, err)
		}
		time.Sleep(time.Nanosecond)
		calls, woken = nil, 0
		if got, err := s.ExpireOrders(t.Context()); got != n || err != nil {
			t.Errorf("%d expired (%v), want %d", got, err, n)
		}
		if got := strings.Join(calls, " "); got != "Overdue Expire Overdue Expire Overdue Expire Overdue" {
			t.Errorf("by %s", got)
		}
		if seen.expired != n || woken != 3 {
			t.Errorf("the observer was told %d, the relay was woken %d times", seen.expired, woken)
		}
		if got, err := s.ExpireOrders(t.Context()); got != 0 || err != nil {
			t.Errorf("%d expired again (%v)", got, err)
		}
		wantAudit(t, store)
		if v, _ := s.Voucher(t.Context(), voucherID); v.Stock != v.Total-1 {
			t.Errorf("%d of %d units are back, one is paid for", v.Stock, v.Total)
		}
	})
}

func TestExpireOrders_Failures(t *testing.T) {
	for name, c := range map[string]struct {
		method string
		noIDs  bool
		calls  int // of Expire
	}{"list": {method: "Overdue"}, "ids": {noIDs: true}, "close": {method: "Expire", calls: 1}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, ids, woken := newFakeStore(), &countedIDs{}, 0
				store.sell(voucherID, 5, 1)
				s := openShop(t, store, func(c *Config) { c.IDs, c.WakeRelay = ids, func() { woken++ } })
				unpaid(t, s, 3)
				synctest.Wait()
				time.Sleep(time.Hour / 2)
				calls, woken0 := 0, woken
				store.reading = func(_ context.Context, method string) error {
					if method == "Expire" {
						calls++
					}
					if method == c.method {
						return ErrUnavailable
					}
					return nil
				}
				if c.noIDs {
					ids.err = context.DeadlineExceeded
				}
				n, err := s.ExpireOrders(t.Context())
				if n != 0 || CodeOf(err) != CodeUnavailable || calls != c.calls || woken != woken0 {
					t.Errorf("%d expired, %v, %d calls, woken %d times", n, err, calls, woken-woken0)
				}
			})
		})
	}
}

// Another instance closes the orders in between: this one does not try them for ever.
func TestExpireOrders_TwoInstances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, ids := newFakeStore(), &countedIDs{}
		store.sell(voucherID, 1000, 1)
		shared := func(c *Config) { c.IDs = ids }
		here, there := openShop(t, store, shared), openShop(t, store, shared)
		unpaid(t, here, 900)
		time.Sleep(time.Hour / 2)
		store.reading = func(context.Context, string) error { time.Sleep(time.Millisecond); return nil }
		var wg sync.WaitGroup
		var closed [2]int
		for i, s := range []*Shop{here, there} {
			wg.Go(func() {
				n, err := s.ExpireOrders(t.Context())
				wantNoError(t, err)
				closed[i] = n
			})
		}
		wg.Wait()
		if closed[0]+closed[1] != 900 {
			t.Errorf("closed %v of 900 orders", closed)
		}
		wantAudit(t, store)
	})
}

// lockedStore has overdue orders that another transaction is changing.
type lockedStore struct{ *fakeStore }

func (lockedStore) Overdue(context.Context, int) ([]idgen.ID, error) { return []idgen.ID{1}, nil }

func (lockedStore) Expire(ctx context.Context, _, _ []idgen.ID) (map[idgen.ID]int64, error) {
	return nil, ctx.Err()
}

func TestExpireOrders_LeavesOrdersThatOthersChange(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // ends a loop that does not
	defer cancel()
	s := openShop(t, newFakeStore(), func(c *Config) { c.Orders = lockedStore{newFakeStore()} })
	if n, err := s.ExpireOrders(ctx); n != 0 || err != nil {
		t.Errorf("%d expired, %v", n, err)
	}
}

func TestRunExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, seen := newFakeStore(), &recorder{}
		store.sell(voucherID, 5, 1)
		var log bytes.Buffer
		s := openShop(t, store, func(c *Config) {
			c.Observer, c.Log = seen, slog.New(slog.NewTextHandler(&log, nil))
		})
		unpaid(t, s, 2)
		var down atomic.Bool
		down.Store(true)
		store.reading = func(context.Context, string) error {
			if down.Load() {
				return ErrUnavailable
			}
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { s.RunExpiry(ctx, time.Minute) })
		time.Sleep(16*time.Minute + time.Second)
		synctest.Wait()
		if n := strings.Count(log.String(), "closing unpaid orders failed"); n != 16 || seen.expiredOrders() != 0 {
			t.Errorf("%d failures logged, %d expired", n, seen.expiredOrders())
		}
		down.Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		if seen.expiredOrders() != 2 {
			t.Errorf("%d expired a turn after the database came back", seen.expiredOrders())
		}
		logged := log.Len()
		cancel()
		wg.Wait()
		if log.Len() != logged {
			t.Errorf("stopping was logged as a failure: %s", log.String()[logged:])
		}
	})
}

// Pay, cancel and expiry at the same time: one of them wins, and the unit is returned at most once.
func TestExpireOrders_RacesWithPayAndCancel(t *testing.T) {
	for round := range 30 {
		store := newFakeStore()
		store.sell(voucherID, 1, 1)
		s := openShop(t, store)
		wantNoError(t, buy(s, 1))
		store.offset = 15 * time.Minute // it is overdue now
		orders, err := s.Orders(t.Context(), 1, 0, 1)
		wantNoError(t, err)
		id := orders[0].ID
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { _, _ = s.PayOrder(t.Context(), 1, id, "money") })
			wg.Go(func() { _, _ = s.CancelOrder(t.Context(), 1, id) })
			wg.Go(func() { _, _ = s.ExpireOrders(t.Context()) })
		}
		wg.Wait()
		wantAudit(t, store)
		o, err := s.Order(t.Context(), 1, id)
		wantNoError(t, err)
		events := map[EventType]int{}
		for _, e := range store.events {
			events[e]++
		}
		won := events[OrderPaid] + events[OrderCancelled] + events[OrderExpired]
		if won != 1 || events[OrderRefundDue] != 1-events[OrderPaid] || o.Version != len(store.events) {
			t.Fatalf("round %d: %+v with events %v", round, o, events)
		}
	}
}
