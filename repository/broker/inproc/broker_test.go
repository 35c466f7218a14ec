package inproc_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

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
		Forgets: true,
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

// The confirmation comes after the effect: an event whose handler is not done is not confirmed.
func TestConfirmationWaitsForTheHandler(t *testing.T) {
	b := inproc.New(inproc.Options{Groups: []string{"points"}})
	defer b.Close()
	ctx, cancel := context.WithCancel(t.Context())
	entered, leave := make(chan struct{}), make(chan struct{})
	ended := make(chan error, 1)
	go func() {
		ended <- b.Subscribe(ctx, "points", func(context.Context, outbox.Event) error {
			entered <- struct{}{}
			<-leave
			return nil
		})
	}()
	confirmed := make(chan []error, 1)
	go func() {
		for {
			results := b.Publish(t.Context(), brokertest.Events(1))
			if !errors.Is(results[0], outbox.ErrUnavailable) { // until the subscription is there
				confirmed <- results
				return
			}
		}
	}()
	<-entered
	select {
	case results := <-confirmed:
		t.Errorf("confirmed %v while the handler runs", results)
	case <-time.After(20 * time.Millisecond):
	}
	close(leave)
	if results := <-confirmed; results[0] != nil {
		t.Error(results[0])
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A handler that fails for good is its publisher's matter in the end, so that the row's own back-off takes over.
func TestHandlerThatKeepsFailing(t *testing.T) {
	b := inproc.New(inproc.Options{Groups: []string{"points"}, Tries: 3, Pause: time.Millisecond})
	defer b.Close()
	failure := errors.New("not today")
	calls := 0
	go b.Subscribe(t.Context(), "points", func(context.Context, outbox.Event) error {
		calls++
		return failure
	})
	var err error = outbox.ErrUnavailable
	for errors.Is(err, outbox.ErrUnavailable) {
		err = b.Publish(t.Context(), brokertest.Events(1))[0]
	}
	if !errors.Is(err, failure) || calls != 3 {
		t.Errorf("%v after %d calls, want the handler's error after 3", err, calls)
	}
}
