package outbox_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"seckill/service/outbox"
)

// While commits come in quick succession the relay takes a tenth of the time, and goes back to all of it afterwards.
func TestRelayMakesWayForABusyShop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const work = 5 * time.Millisecond // the store's, for each batch
		broker := &script{}
		r := outbox.NewRelay(outbox.Config{Store: &endless{took: work}, Broker: broker})
		defer start(r)()
		busy := func(d time.Duration) (batches int) {
			before := broker.count()
			for began := time.Now(); time.Since(began) < d; time.Sleep(5 * time.Millisecond) {
				r.Wake()
			}
			return broker.count() - before
		}
		busy(time.Second) // until it has noticed
		if n := busy(10 * time.Second); n < 180 || n > 220 {
			t.Errorf("%d batches in 10 s, want about a tenth of 2000", n)
		}
		busy(5 * time.Second)
		if n := busy(time.Second); n < 80 || n > 120 {
			t.Errorf("%d batches in 1 s when it is far behind, want about half of 200", n)
		}
		time.Sleep(time.Second) // the last commit was a while ago
		before := broker.count()
		time.Sleep(time.Second)
		if n := broker.count() - before; n < 190 {
			t.Errorf("%d batches in 1 s of an idle shop, want all of 200", n)
		}
	})
}

// endless is a store with a backlog that never ends, and whose claims take time.
type endless struct {
	memory
	took time.Duration
	last int64
}

func (s *endless) Claim(_ context.Context, c outbox.Claim) (outbox.Batch, error) {
	time.Sleep(s.took)
	s.last++
	return outbox.Batch{Token: "t", Events: []outbox.Event{{ID: s.last}}, Attempts: []int{0}}, nil
}

// The clients of a broker that comes back do not arrive in lockstep.
func TestPausesPartClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients, attempts = 50, 6
		var mu sync.Mutex
		arrivals := map[time.Duration]int{} // by windows of 100 ms
		began := time.Now()
		var running sync.WaitGroup
		for range clients {
			running.Go(func() {
				for failures := 1; failures <= attempts; failures++ {
					if !(outbox.Pause{}).Wait(t.Context(), failures) {
						t.Error("a pause ended early")
					}
				}
				mu.Lock()
				defer mu.Unlock()
				arrivals[time.Since(began)/(100*time.Millisecond)]++
			})
		}
		running.Wait()
		for at, n := range arrivals {
			if n > clients/4 {
				t.Errorf("%d of %d clients arrive within 100 ms, %v after they lost the broker", n, clients, at*100*time.Millisecond)
			}
		}
	})
}
