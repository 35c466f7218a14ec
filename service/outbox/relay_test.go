package outbox_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"seckill/service/outbox"
)

// start runs a relay until the returned function is called, which waits for it to end.
func start(r *outbox.Relay) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	return func() { cancel(); running.Wait() }
}

func TestRelay_ClaimsWhenWokenAndEveryTwoSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, broker := &memory{}, &script{}
		r := outbox.NewRelay(outbox.Config{Store: store, Broker: broker})
		defer start(r)()
		synctest.Wait() // the relay has found nothing and waits

		time.Sleep(300 * time.Millisecond)
		store.add(1)
		r.Wake()
		synctest.Wait()
		if store.row(1).state != "sent" {
			t.Error("a relay that was woken has not sent the event at once")
		}

		committed := time.Now()
		store.add(2) // its wake-up is lost
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if at := broker.published(2); len(at) != 1 || at[0].Sub(committed) != 2*time.Second {
			t.Errorf("without a wake-up published at %v, want once, 2 s after %v", at, committed)
		}
	})
}

func TestRelay_DrainsUntilNothingIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, broker := &memory{}, &script{}
		for id := range int64(1050) {
			store.add(id + 1)
		}
		began := time.Now()
		stop := start(outbox.NewRelay(outbox.Config{Store: store, Broker: broker}))
		synctest.Wait()
		if b, _ := store.Backlog(t.Context()); b.Pending != 0 || time.Since(began) != 0 {
			t.Errorf("%d events are left after %v, want none at once", b.Pending, time.Since(began))
		}
		stop()
		if len(broker.calls) != 11 || len(broker.calls[0]) != 100 {
			t.Errorf("published %d batches of %d, want 11 of 100", len(broker.calls), len(broker.calls[0]))
		}
	})
}

func TestRelay_RetriesWithGrowingPausesThenGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memory{}
		broker := &script{answer: func(_ context.Context, e outbox.Event) error {
			if e.ID == 13 {
				return errors.New("no confirmation")
			}
			return nil
		}}
		store.add(13)
		observer := &gaveUp{}
		r := outbox.NewRelay(outbox.Config{Store: store, Broker: broker, Observer: observer})
		defer start(r)()
		synctest.Wait()
		store.add(14)
		time.Sleep(4 * time.Hour)
		synctest.Wait()

		at := broker.published(13)
		if len(at) != 8 {
			t.Fatalf("published %d times, want 8", len(at))
		}
		want := time.Minute
		for i := 1; i < len(at); i++ {
			pause := at[i].Sub(at[i-1])
			if pause < want*4/5 || pause > want*6/5+2*time.Second { // and up to a poll
				t.Errorf("pause %d was %v, want about %v", i, pause, want)
			}
			want *= 2
		}
		if r := store.row(13); r.state != "failed" || r.attempts != 8 {
			t.Errorf("after the last attempt the row is %q after %d attempts", r.state, r.attempts)
		}
		if len(observer.ids) != 1 || observer.ids[0] != 13 {
			t.Errorf("gave up %v, want 13 once", observer.ids)
		}
		if store.row(14).state != "sent" {
			t.Error("an event behind one that fails was held up")
		}
	})
}

type gaveUp struct {
	outbox.NoObserver
	ids []int64
}

func (g *gaveUp) GaveUp(e outbox.Event, _ error) { g.ids = append(g.ids, e.ID) }

func TestRelay_GivesUpRefusedEventAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memory{}
		store.add(1, 2, 3)
		broker := &script{answer: func(_ context.Context, e outbox.Event) error {
			if e.ID == 1 {
				return outbox.ErrRefused
			}
			return nil
		}}
		defer start(outbox.NewRelay(outbox.Config{Store: store, Broker: broker}))()
		synctest.Wait()
		for id, want := range map[int64]string{1: "failed", 2: "sent", 3: "sent"} {
			if got := store.row(id).state; got != want {
				t.Errorf("event %d is %q, want %q", id, got, want)
			}
		}
	})
}

func TestRelay_UnavailableBrokerCostsNoAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memory{}
		var mu sync.Mutex
		unavailable := true
		broker := &script{answer: func(context.Context, outbox.Event) error {
			mu.Lock()
			defer mu.Unlock()
			if unavailable {
				return outbox.ErrUnavailable
			}
			return nil
		}}
		for id := range int64(500) {
			store.add(id + 1)
		}
		r := outbox.NewRelay(outbox.Config{Store: store, Broker: broker})
		defer start(r)()
		for range 3600 {
			r.Wake() // orders continue, and so do their wake-ups
			time.Sleep(time.Second)
		}
		if n := broker.count(); n < 3600/5 || n > 3*3600/5 {
			t.Errorf("the broker was tried %d times in an hour, want every 2.5 to 5 s", n)
		}
		for _, r := range store.rows {
			if r.attempts != 0 {
				t.Fatalf("event %d was charged %d attempts", r.event.ID, r.attempts)
			}
		}
		mu.Lock()
		unavailable = false
		mu.Unlock()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if b, _ := store.Backlog(t.Context()); b.Pending != 0 {
			t.Errorf("%d events are left 5 s after the broker came back", b.Pending)
		}
	})
}

// Events that are being published when the relay stops get their confirmation and their mark.
func TestRelay_StopFinishesBatchesInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memory{}
		store.add(1)
		broker := &script{answer: func(ctx context.Context, _ outbox.Event) error {
			select {
			case <-time.After(time.Second):
				return nil
			case <-ctx.Done():
				return outbox.ErrUnavailable
			}
		}}
		stop := start(outbox.NewRelay(outbox.Config{Store: store, Broker: broker}))
		synctest.Wait() // publishing
		store.add(2)
		stop()
		if store.row(1).state != "sent" {
			t.Error("a published event was not marked")
		}
		if n := len(broker.published(2)); n != 0 {
			t.Errorf("after the stop another event was published %d times", n)
		}
	})
}

func TestRelay_StopDoesNotWaitForASilentBroker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memory{}
		store.add(1)
		broker := &script{answer: func(ctx context.Context, _ outbox.Event) error {
			<-ctx.Done()
			return outbox.ErrUnavailable
		}}
		stop := start(outbox.NewRelay(outbox.Config{Store: store, Broker: broker}))
		synctest.Wait()
		began := time.Now()
		stop()
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("stopping took %v, want 3 s", took)
		}
		if r := store.row(1); r.state != "" || r.attempts != 0 || r.due.After(time.Now()) {
			t.Errorf("the event is %q with %d attempts, due %v from now; want it due at once for others", r.state, r.attempts, time.Until(r.due))
		}
	})
}

func TestRelay_WaitsForItsStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, broker := &memory{}, &script{}
		store.setBroken(true)
		store.add(1)
		defer start(outbox.NewRelay(outbox.Config{Store: store, Broker: broker}))()
		time.Sleep(time.Minute)
		if broker.count() != 0 {
			t.Fatal("published without a claim")
		}
		store.setBroken(false)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if store.row(1).state != "sent" {
			t.Error("not sent 2 s after the store came back")
		}
	})
}

// The row of a failed mark is due again after its lease: the event is sent twice and never lost.
func TestRelay_LostMarkIsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memory{}
		store.add(1)
		broker := &script{answer: func(context.Context, outbox.Event) error {
			store.setBroken(true) // between publishing and the mark
			return nil
		}}
		defer start(outbox.NewRelay(outbox.Config{Store: store, Broker: broker}))()
		synctest.Wait()
		broker.answer = nil
		store.setBroken(false)
		time.Sleep(33 * time.Second)
		synctest.Wait()
		if n := len(broker.published(1)); n != 2 || store.row(1).state != "sent" {
			t.Errorf("published %d times and %q, want twice and sent", n, store.row(1).state)
		}
	})
}
