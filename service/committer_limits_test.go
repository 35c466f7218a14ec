package service

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"seckill/service/idgen"
)

func TestCommitter_FullQueueRefusesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.sell(voucherID, 100, 1)
		gate := newTurnstile(store)
		seen := &recorder{}
		s := openShop(t, store, func(c *Config) { c.QueueMax, c.Observer = 10, seen })
		var wg sync.WaitGroup
		arrive(&wg, s, users(1, 11)...) // one in a batch, ten in the queue
		start := time.Now()
		for u := range UserID(1000) {
			err := buy(s, 100+u)
			var e *Error
			if !errors.As(err, &e) || e.Code != CodeBusy || e.RetryAfter <= 0 {
				t.Fatalf("with a full queue: %v", err)
			}
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("refusals waited %v", took)
		}
		if seen.mostTold != 10 || len(s.queued(voucherID)) != 10 {
			t.Errorf("%d told, %d kept, want 10", seen.mostTold, len(s.queued(voucherID)))
		}
		gate.let(2)
		wg.Wait()
		if seen.lastWaiting() != 0 || store.placedOrders() != 11 {
			t.Errorf("%d waiting, %d placed at the end", seen.lastWaiting(), store.placedOrders())
		}
		wg.Go(func() { wantNoError(t, buy(s, 50)) }) // room again
		gate.let(1)
		wg.Wait()
	})
}

// queued returns the orders in a voucher's queue.
func (s *Shop) queued(id idgen.ID) []*Placement {
	found, ok := s.sales.Load(id)
	if !ok {
		return nil
	}
	s.commits.mu.Lock()
	defer s.commits.mu.Unlock()
	return slices.Clone(found.(*saleState).queue.orders)
}

func TestCommitter_WithdrawnOrderNeverReachesTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.sell(voucherID, 100, 1)
		gate := newTurnstile(store)
		s := openShop(t, store)
		var wg sync.WaitGroup
		arrive(&wg, s, 1)
		ctx, leave := context.WithCancelCause(t.Context())
		gone := errors.New("the client has gone")
		wg.Go(func() {
			_, _, err := s.PlaceOrder(ctx, PlaceRequest{VoucherID: voucherID, UserID: 2})
			wantCode(t, err, CodeUnavailable)
			if !errors.Is(err, gone) {
				t.Errorf("%v hides why", err)
			}
		})
		synctest.Wait()
		arrive(&wg, s, 3)
		leave(gone)
		synctest.Wait()
		if n := len(s.queued(voucherID)); n != 1 {
			t.Errorf("%d orders in the queue, want the one of user 3", n)
		}
		gate.let(2)
		wg.Wait()
		if len(store.live(voucherID, 2)) != 0 || len(store.live(voucherID, 3)) != 1 {
			t.Error("the withdrawn order was placed, or its neighbour was not")
		}
		wantAudit(t, store)
	})
}

func TestCommitter_EndedContextIsNotQueued(t *testing.T) {
	store, seen := newFakeStore(), &recorder{}
	store.sell(voucherID, 100, 1)
	s := openShop(t, store, func(c *Config) { c.Observer = seen })
	sale, _, err := s.sale(t.Context(), voucherID)
	wantNoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	wantCode(t, s.commits.submit(ctx, sale, &Placement{}), CodeUnavailable)
	if seen.mostTold != 0 || store.commits.Load() != 0 {
		t.Errorf("%d were waiting, %d batches", seen.mostTold, store.commits.Load())
	}
}

// Twenty thousand callers queue behind one slow batch and give up. Neither the queue's bound nor the memory fills up.
func TestCommitter_QueueKeepsNoWithdrawnOrders(t *testing.T) {
	store := newFakeStore()
	store.sell(voucherID, 10, 1)
	gate := newTurnstile(store)
	s := openShop(t, store, func(c *Config) { c.QueueMax = 100 })
	var wg sync.WaitGroup
	started := make(chan struct{})
	store.placing = func(ctx context.Context, id idgen.ID, batch []*Placement) {
		close(started)
		gate.wait(ctx, id, batch)
	}
	wg.Go(func() { wantNoError(t, buy(s, 1)) })
	<-started
	sale, _, err := s.sale(t.Context(), voucherID)
	wantNoError(t, err)
	before := heapInUse()
	for range 20_000 {
		ctx, cancel := context.WithCancel(context.Background())
		p := &Placement{}
		done := make(chan error, 1)
		wg.Go(func() { done <- s.commits.submit(ctx, sale, p) })
		for len(s.queued(voucherID)) == 0 {
			runtime.Gosched()
		}
		cancel()
		if err := <-done; CodeOf(err) != CodeUnavailable {
			t.Fatal(err)
		}
	}
	if grown := heapInUse() - before; grown > 1<<20 {
		t.Errorf("the heap grew by %d KiB", grown>>10)
	}
	if n := len(s.queued(voucherID)); n != 0 {
		t.Errorf("%d orders in the queue", n)
	}
	gate.turn <- struct{}{}
	wg.Wait()
}

func heapInUse() int64 {
	runtime.GC()
	runtime.GC() // also what the first one made unreachable, such as pools
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A caller whose context ends while its batch is committed gets ErrUnknown at once, and must not race with the batch over
// the placement (run with -race). Its order is placed, and the same request finds it.
func TestCommitter_ContextEndsDuringTheCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.sell(voucherID, 100, 1)
		gate := newTurnstile(store)
		locker := &tryLocker{released: func(ctx context.Context) {
			if ctx.Err() != nil {
				t.Error("the lock is released on the context of who left")
			}
		}}
		s := openShop(t, store, func(c *Config) { c.Locker = locker })
		ctx, leave := context.WithCancel(t.Context())
		req := PlaceRequest{VoucherID: voucherID, UserID: 1, RequestID: "mine"}
		var wg sync.WaitGroup
		wg.Go(func() {
			order, _, err := s.PlaceOrder(ctx, req)
			var e *Error
			if !errors.As(err, &e) || e.Code != CodeUnknown || e.RequestID != "mine" || order.ID != 0 {
				t.Errorf("answered %+v, %v", order, err)
			}
		})
		synctest.Wait()
		leave()
		synctest.Wait()
		if locker.holds() != 0 {
			t.Error("the lock of who left is still held")
		}
		wg.Go(func() {
			order, replayed, err := s.PlaceOrder(t.Context(), req) // waits behind the batch
			if err != nil || !replayed || order.RequestID != "mine" || order.ID != 1001 {
				t.Errorf("the repeat got %+v, %t, %v", order, replayed, err)
			}
		})
		synctest.Wait()
		gate.let(2)
		wg.Wait()
		wantAudit(t, store)
	})
}

// The verdict and the end of the context come at the same moment: the caller gets a correct answer.
func TestCommitter_ContextEndsWithTheVerdict(t *testing.T) {
	store := newFakeStore()
	store.sell(voucherID, 100_000, 1)
	s := openShop(t, store)
	outcomes := map[Code]int{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for u := range UserID(4000) {
		wg.Go(func() {
			patience := time.Duration(u%40) * 25 * time.Microsecond
			if u%40 == 39 {
				patience = time.Minute
			}
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			order, _, err := s.PlaceOrder(ctx, PlaceRequest{VoucherID: voucherID, UserID: u + 1})
			mu.Lock()
			defer mu.Unlock()
			outcomes[CodeOf(err)]++
			stands, _ := store.Orders(context.Background(), u+1, 0, 1)
			switch {
			case err == nil && (len(stands) != 1 || stands[0] != order):
				t.Errorf("user %d was answered %+v, %+v stands", u+1, order, stands)
			case CodeOf(err) == CodeUnavailable && len(stands) != 0:
				t.Errorf("user %d was told that nothing was done, %+v stands", u+1, stands)
			}
		})
	}
	wg.Wait()
	if outcomes[""] == 0 || outcomes[CodeUnavailable] == 0 {
		t.Errorf("the moments of leaving do not cover placed and withdrawn: %v", outcomes)
	}
	t.Log(outcomes)
}
