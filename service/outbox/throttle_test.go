package outbox_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"seckill/service/outbox"
)

// While commits come in quick succession the relay works a tenth of the time, and all of the time afterwards.
func TestThrottle_RestsWhileBusy(t *testing.T) {
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

// The rest after a batch that waited for an unavailable broker is limited, so that the relay continues soon after the
// broker is back.
func TestThrottle_LimitsRestAfterSlowBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const silence, soon = 7 * time.Second, 20 * time.Second
		var back atomic.Bool
		broker := &script{answer: func(context.Context, outbox.Event) error {
			if back.Load() {
				return nil
			}
			time.Sleep(silence)
			return outbox.ErrUnavailable
		}}
		first := &firstSent{sent: make(chan struct{})}
		r := outbox.NewRelay(outbox.Config{Store: &endless{took: time.Millisecond}, Broker: broker, Observer: first})
		defer start(r)()
		busy, stop := context.WithCancel(t.Context())
		var commits sync.WaitGroup
		defer commits.Wait()
		defer stop()
		commits.Go(func() {
			for busy.Err() == nil {
				r.Wake()
				time.Sleep(5 * time.Millisecond)
			}
		})
		time.Sleep(30 * time.Second)
		back.Store(true)
		began := time.Now()
		select {
		case <-first.sent:
			t.Logf("sent %s after the broker was back", time.Since(began))
		case <-time.After(soon):
			t.Errorf("nothing was sent within %s after the broker was back", soon)
		}
	})
}

// firstSent closes sent when the first event was sent.
type firstSent struct {
	outbox.NoObserver
	once sync.Once
	sent chan struct{}
}

func (f *firstSent) Sent(outbox.Event, time.Duration) { f.once.Do(func() { close(f.sent) }) }

// endless is a store with an endless backlog, whose claims take time.
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
