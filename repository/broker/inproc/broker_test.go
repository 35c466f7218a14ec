package inproc_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"

	"seckill/repository/broker/inproc"
	"seckill/service/outbox"
	"seckill/service/outbox/brokertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBroker(t *testing.T) {
	var mu sync.Mutex
	dead := map[string][]int64{}
	brokertest.Run(t, brokertest.Config{
		StoresNothing: true,
		Open: func(_ *testing.T, topic string, groups ...string) outbox.Broker {
			return inproc.New(inproc.Options{Groups: groups, DeadLetter: func(group string, e outbox.Event, _ error) {
				mu.Lock()
				defer mu.Unlock()
				dead[topic+group] = append(dead[topic+group], e.ID)
			}})
		},
		DeadLetters: func(_ *testing.T, topic, group string) []int64 {
			mu.Lock()
			defer mu.Unlock()
			return slices.Clone(dead[topic+group])
		},
	})
}

// subscribe starts a subscription and returns when it gets events.
func subscribe(t *testing.T, b *inproc.Broker, handle outbox.Handler) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := b.Subscribe(ctx, "points", handle); err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
	return func() { cancel(); running.Wait() }
}

// An event is confirmed after its handler has returned, not before.
func TestBroker_ConfirmsAfterHandler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := inproc.New(inproc.Options{Groups: []string{"points"}})
		defer b.Close()
		leave := make(chan struct{})
		defer subscribe(t, b, func(context.Context, outbox.Event) error { <-leave; return nil })()
		confirmed := make(chan []error, 1)
		go func() { confirmed <- b.Publish(t.Context(), brokertest.Events(1)) }()
		synctest.Wait()
		select {
		case results := <-confirmed:
			t.Errorf("confirmed %v while the handler runs", results)
		default:
		}
		close(leave)
		if results := <-confirmed; results[0] != nil {
			t.Error(results[0])
		}
	})
}

// The error of a handler that keeps failing reaches the publisher, so that the relay tries the row again later.
func TestBroker_FailingHandlerFailsPublish(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := inproc.New(inproc.Options{Groups: []string{"points"}})
		defer b.Close()
		failure := errors.New("not today")
		calls := 0
		defer subscribe(t, b, func(context.Context, outbox.Event) error { calls++; return failure })()
		if err := b.Publish(t.Context(), brokertest.Events(1))[0]; !errors.Is(err, failure) || calls != 6 {
			t.Errorf("%v after %d calls, want the handler's error after 6", err, calls)
		}
	})
}
