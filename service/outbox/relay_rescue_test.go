package outbox_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"seckill/service/outbox"
)

func TestRelay_RescueTakesOverdueEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, broker := &memory{}, &script{}
		store.add(1, 2)
		store.rows[1].attempts = 3
		r := outbox.NewRelay(outbox.Config{Store: store, Broker: broker}) // Run is not called
		rescue := func(want int) {
			t.Helper()
			if o, err := r.Rescue(t.Context()); err != nil || o.Sent != want {
				t.Errorf("rescued %+v (%v), want %d sent", o, err, want)
			}
		}
		rescue(1) // the one with three failures
		time.Sleep(time.Minute - time.Millisecond)
		rescue(0)
		time.Sleep(time.Millisecond)
		rescue(1)
	})
}

func TestWaitEmpty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &memory{}
		store.add(1, 2)
		store.rows[1].state = "failed"
		go func() {
			time.Sleep(time.Second)
			_ = store.MarkSent(t.Context(), []int64{1})
		}()
		b, err := outbox.WaitEmpty(t.Context(), store)
		if err != nil || b != (outbox.Backlog{Failed: 1}) {
			t.Errorf("got %+v, %v; want one failed", b, err)
		}
		store.add(3)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if b, err := outbox.WaitEmpty(ctx, store); !errors.Is(err, context.DeadlineExceeded) || b.Pending != 1 {
			t.Errorf("got %+v, %v; want one pending at the deadline", b, err)
		}
	})
}
