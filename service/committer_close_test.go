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

func TestShop_CloseDrainsAndRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.sell(voucherID, 100, 1)
		gate := newTurnstile(store)
		woken := 0
		wake := func() {
			time.Sleep(time.Millisecond) // Close has time to return too early
			woken++
		}
		s := openShop(t, store, func(c *Config) { c.BatchMax, c.WakeRelay = 2, wake })
		errs := make([]error, 5)
		var wg, closing sync.WaitGroup
		for i := range errs {
			wg.Go(func() { errs[i] = buy(s, UserID(i+1)) })
			synctest.Wait()
		}
		short, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("closing takes too long"))
		defer cancel()
		if err := s.Close(short); err == nil || err.Error() != "closing takes too long" {
			t.Errorf("closing with work in hand: %v", err)
		}
		wantCode(t, buy(s, 99), CodeUnavailable)
		closed := false
		closing.Go(func() {
			wantNoError(t, s.Close(context.Background()))
			closed = true
		})
		synctest.Wait()
		gate.let(2)
		if closed {
			t.Error("closed before the queue was empty")
		}
		gate.let(1)
		closing.Wait()
		if woken != 3 {
			t.Errorf("the relay was woken %d times before Close returned, want 3", woken)
		}
		wg.Wait()
		for i, err := range errs {
			if err != nil {
				t.Errorf("order %d: %v", i, err)
			}
		}
		wantAudit(t, store)
	})
}

// Orders that arrive while the shop closes get a correct answer, and Close waits for all accepted ones.
func TestShop_CloseRacesWithArrivals(t *testing.T) {
	for range 50 {
		store := newFakeStore()
		store.sell(voucherID, 1000, 1)
		s := openShop(t, store)
		var wg sync.WaitGroup
		placed := make([]bool, 64)
		for i := range placed {
			wg.Go(func() {
				err := buy(s, UserID(i+1))
				if placed[i] = err == nil; err != nil {
					wantCode(t, err, CodeUnavailable)
				}
			})
		}
		wantNoError(t, s.Close(context.Background()))
		atClose := store.placedOrders()
		wg.Wait()
		n := 0
		for _, p := range placed {
			if p {
				n++
			}
		}
		if n != atClose || n != store.placedOrders() {
			t.Fatalf("%d orders when Close returned, %d answered, %d at the end", atClose, n, store.placedOrders())
		}
	}
}

// The store's context ends after CommitTimeout.
func TestCommitter_Timeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.sell(voucherID, 100, 1)
		store.placing = func(ctx context.Context, _ idgen.ID, _ []*Placement) { <-ctx.Done() }
		store.refuse = func() error { return Unknown(context.DeadlineExceeded) }
		s := openShop(t, store, func(c *Config) { c.CommitTimeout = 3 * time.Second })
		start := time.Now()
		wantCode(t, buy(s, 1), CodeUnknown)
		if took := time.Since(start); took != 3*time.Second {
			t.Errorf("answered after %v", took)
		}
	})
}
