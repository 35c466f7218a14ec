package brokertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"seckill/service/outbox"
)

func testRedelivery(t *testing.T, c Config) {
	b := c.open(t, Topic(), "points")
	events := Events(20)
	bad := events[0].ID
	var failures atomic.Int32
	in := subscribe(t, b, "points", func(_ context.Context, e outbox.Event) error {
		if e.ID == bad && failures.Add(1) <= 3 {
			return errors.New("not now")
		}
		return nil
	})
	ready(t, b, in)
	start := time.Now()
	publishUntilConfirmed(t, b, events...)
	wait(t, events[1:], in)
	wait(t, events, in)
	if n := failures.Load(); n != 4 {
		t.Errorf("the event was delivered %d times, want 4: three that failed and one that did not", n)
	}
	if took := time.Since(start); took > 4*c.Pause+time.Second {
		t.Errorf("took %v, with pauses of at most %v", took, c.Pause)
	}
}

func testPoison(t *testing.T, c Config) {
	topic := Topic()
	b := c.open(t, topic, "points")
	events := Events(20)
	bad := events[0].ID
	var deliveries atomic.Int32
	in := subscribe(t, b, "points", func(_ context.Context, e outbox.Event) error {
		if e.ID == bad {
			deliveries.Add(1)
			return fmt.Errorf("%w: it makes no sense", outbox.ErrPoison)
		}
		return nil
	})
	ready(t, b, in)
	publish(t, b, events...)
	wait(t, events[1:], in)
	later := Events(20)
	publish(t, b, later...)
	wait(t, later, in)
	if c.DeadLetters == nil {
		time.Sleep(min(c.Pause, time.Second)) // there is no signal for something that must not happen
	} else {
		waitFor(t, "the dead letter", func() bool { return slices.Contains(c.DeadLetters(t, topic, "points"), bad) })
	}
	if n := deliveries.Load(); n != 1 {
		t.Errorf("the poison event was delivered %d times, want once", n)
	}
}

// A subscription that ends while a handler runs has not acknowledged its event, so another subscription gets it.
func testUnfinished(t *testing.T, c Config) {
	topic := Topic()
	b := c.open(t, topic, "points")
	var armed atomic.Bool
	began := make(chan struct{}, 1000)
	in := subscribe(t, b, "points", func(ctx context.Context, e outbox.Event) error {
		if !armed.Load() {
			return nil
		}
		began <- struct{}{}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	ready(t, b, in)
	armed.Store(true)
	events := Events(5)
	publish(t, b, events...)
	select {
	case <-began:
	case <-time.After(timeout):
		t.Fatal("nothing was delivered")
	}
	in.stop()
	wait(t, events, subscribe(t, c.open(t, topic, "points"), "points", nil))
}

func testAbsentGroup(t *testing.T, c Config) {
	topic := Topic()
	b := c.open(t, topic, "points", "notification")
	before := Events(10)
	publish(t, b, before...) // nobody has ever subscribed
	in := subscribe(t, b, "points", nil)
	wait(t, before, in)
	in.stop()
	meanwhile := Events(10)
	publish(t, b, meanwhile...)
	again := subscribe(t, c.open(t, topic, "points", "notification"), "points", nil)
	wait(t, meanwhile, again)
	wait(t, append(before, meanwhile...), subscribe(t, b, "notification", nil))
}

// testNobody runs with fake time, because a broker that stores nothing has no server.
func testNobody(t *testing.T, c Config) {
	synctest.Test(t, func(t *testing.T) {
		b := c.open(t, Topic(), "points", "notification")
		expect := func(when string) {
			t.Helper()
			synctest.Wait()
			for _, err := range b.Publish(deadline(t), Events(3)) {
				if !errors.Is(err, outbox.ErrUnavailable) {
					t.Errorf("%s: %v, want ErrUnavailable", when, err)
				}
			}
		}
		expect("no group has subscribed")
		points := subscribe(t, b, "points", nil)
		expect("one group of two has subscribed")
		notification := subscribe(t, b, "notification", nil)
		ready(t, b, points, notification)
		notification.stop()
		expect("one group has left")
	})
}

func testOversize(t *testing.T, c Config) {
	b := c.open(t, Topic(), "points")
	in := subscribe(t, b, "points", nil)
	ready(t, b, in)
	events := Events(5)
	events[0].Payload = make([]byte, c.Oversize)
	results := b.Publish(deadline(t), events)
	if !errors.Is(results[0], outbox.ErrRefused) {
		t.Errorf("the oversized event: %v, want ErrRefused", results[0])
	}
	publishUntilConfirmed(t, b, events[1:]...)
	for i, err := range results[1:] {
		if err != nil {
			t.Errorf("event %d behind it: %v", i+1, err)
		}
	}
	wait(t, events[1:], in)
}

func testContext(t *testing.T, c Config) {
	b := c.open(t, Topic(), "points")
	in := subscribe(t, b, "points", nil)
	ready(t, b, in)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	start := time.Now()
	results := b.Publish(ctx, Events(3))
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("publishing with an ended context took %v", took)
	}
	if len(results) != 3 {
		t.Fatalf("%d results for 3 events", len(results))
	}
	publish(t, b, Events(3)...) // the broker still works
}

func testClose(t *testing.T, c Config) {
	b := c.Open(t, Topic(), "points")
	ended := make(chan error, 1)
	in := &inbox{handle: func(context.Context, outbox.Event) error { return nil }, arrived: make(chan struct{})}
	go func() { ended <- b.Subscribe(context.Background(), "points", in.take) }()
	ready(t, b, in)
	for range 2 {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	select {
	case err := <-ended:
		if !errors.Is(err, outbox.ErrClosed) {
			t.Errorf("the subscription ended with %v, want ErrClosed", err)
		}
	case <-time.After(timeout):
		t.Fatal("the subscription does not end")
	}
	for _, err := range b.Publish(deadline(t), Events(2)) {
		if !errors.Is(err, outbox.ErrClosed) {
			t.Errorf("publishing: %v, want ErrClosed", err)
		}
	}
	if err := b.Subscribe(deadline(t), "points", in.take); !errors.Is(err, outbox.ErrClosed) {
		t.Errorf("subscribing: %v, want ErrClosed", err)
	}
}

func waitFor(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for start := time.Now(); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Since(start) > timeout {
			t.Fatalf("waited %v for %s", timeout, what)
		}
	}
}
