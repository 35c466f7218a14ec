package service

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"seckill/service/idgen"
)

// inUse is the memory in use: live heap and stacks.
func inUse() int64 {
	heap := heapInUse()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return heap + int64(m.StackInuse)
}

func TestMemory_TenThousandWaitingOrders(t *testing.T) {
	const orders, most = 10_000, 150 << 20
	store := newFakeStore()
	store.sell(voucherID, orders+1, 1)
	open, placing := make(chan struct{}), make(chan struct{}, orders)
	store.placing = func(context.Context, idgen.ID, []*Placement) {
		placing <- struct{}{}
		<-open
	}
	s := openShop(t, store)
	before := inUse()
	var wg sync.WaitGroup
	wg.Go(func() { wantNoError(t, buy(s, orders+1)) })
	<-placing // a batch of one is running: all later orders wait
	for u := range UserID(orders) {
		wg.Go(func() { wantNoError(t, buy(s, u+1)) })
	}
	for s.waitingOrders() < orders {
		time.Sleep(time.Millisecond)
	}
	if used := inUse() - before; used > most {
		t.Errorf("%d MiB for %d waiting orders", used>>20, orders)
	} else {
		t.Logf("%d KiB, %d bytes an order", used>>10, used/orders)
	}
	close(open)
	wg.Wait()
	wantAudit(t, store)
}

func (s *Shop) waitingOrders() int {
	s.commits.mu.Lock()
	defer s.commits.mu.Unlock()
	return s.commits.waiting
}

// A million requests are refused (a tenth of that under the race detector) because the voucher is sold out, or because too
// many orders wait. They leave nothing in memory.
func TestMemory_RefusalsKeepNothing(t *testing.T) {
	const clients, most = 1000, 4 << 20
	each := 500_000
	if underRace {
		each /= 10
	}
	t.Run("sold out", func(t *testing.T) {
		store := newFakeStore()
		s := soldOut(t, store)
		refuse(t, s, clients, 10, CodeSoldOut) // the first ones may allocate what stays
		before := heapInUse()
		refuse(t, s, clients, each/clients, CodeSoldOut)
		if grown := heapInUse() - before; grown > most {
			t.Errorf("the heap grew by %d KiB", grown>>10)
		}
		if n := store.commits.Load(); n != 2 {
			t.Errorf("%d transactions", n)
		}
	})
	t.Run("busy", func(t *testing.T) {
		store := newFakeStore()
		store.sell(voucherID, 10, 1)
		started, open := make(chan struct{}), make(chan struct{})
		store.placing = func(context.Context, idgen.ID, []*Placement) { close(started); <-open; store.placing = nil }
		s := openShop(t, store, func(c *Config) { c.QueueMax = 1 })
		var wg sync.WaitGroup
		wg.Go(func() { wantNoError(t, buy(s, 1)) })
		<-started
		wg.Go(func() { wantNoError(t, buy(s, 2)) })
		for len(s.queued(voucherID)) == 0 {
			runtime.Gosched()
		}
		refuse(t, s, clients, 10, CodeBusy)
		before := heapInUse()
		refuse(t, s, clients, each/clients, CodeBusy)
		if grown := heapInUse() - before; grown > most {
			t.Errorf("the heap grew by %d KiB", grown>>10)
		}
		close(open)
		wg.Wait()
	})
}

// refuse sends n requests of each client; each client is another user.
func refuse(t *testing.T, s *Shop, clients, n int, want Code) {
	var wg sync.WaitGroup
	for c := range clients {
		wg.Go(func() {
			for i := range n {
				if err := buy(s, UserID(1000+c*n+i)); CodeOf(err) != want {
					t.Errorf("got %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
}
