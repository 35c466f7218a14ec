package brokertest

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/service/outbox"
)

// Topic returns a new name.
func Topic() string { return "seckill_test_" + strings.ToLower(rand.Text()[:12]) }

var lastID atomic.Int64

// Events returns events with new ids and different keys.
func Events(n int) []outbox.Event {
	events := make([]outbox.Event, n)
	for i := range events {
		id := lastID.Add(1)
		events[i] = outbox.Event{
			ID: id, Type: "ORDER_PAID", Key: id, Version: 2, Payload: []byte(fmt.Sprintf(`{"order_id":"%d"}`, id)),
			CreatedAt: time.Now().UTC().Truncate(time.Millisecond),
		}
	}
	return events
}

// open opens a broker that is closed when the test ends.
func (c Config) open(t *testing.T, topic string, groups ...string) outbox.Broker {
	t.Helper()
	b := c.Open(t, topic, groups...)
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return b
}

// publish publishes the events and fails the test if one is not confirmed.
func publish(t *testing.T, b outbox.Publisher, events ...outbox.Event) {
	t.Helper()
	results := b.Publish(deadline(t), events)
	if len(results) != len(events) {
		t.Fatalf("%d results for %d events", len(results), len(events))
	}
	for i, err := range results {
		if err != nil {
			t.Fatalf("event %d: %v", events[i].ID, err)
		}
	}
}

// publishUntilConfirmed publishes unconfirmed events again, as a relay does.
func publishUntilConfirmed(t *testing.T, b outbox.Publisher, events ...outbox.Event) {
	t.Helper()
	ctx := deadline(t)
	for len(events) > 0 {
		call, cancel := context.WithTimeout(ctx, 5*time.Second)
		results := b.Publish(call, events)
		cancel()
		var again []outbox.Event
		for i, err := range results {
			if err != nil {
				again = append(again, events[i])
			}
		}
		if ctx.Err() != nil {
			t.Fatalf("%d of %d events were not confirmed: %v", len(again), len(events), results)
		}
		if len(again) > 0 {
			time.Sleep(50 * time.Millisecond)
		}
		events = again
	}
}

// inbox is a subscription that records its deliveries.
type inbox struct {
	stop   func() // ends the subscription and waits until it has ended
	handle func(ctx context.Context, e outbox.Event) error

	mu      sync.Mutex
	got     []outbox.Event
	arrived chan struct{} // closed and replaced with each delivery
}

// subscribe records the events that handle has acknowledged; a nil handle acknowledges every event.
func subscribe(t *testing.T, b outbox.Subscriber, group string, handle outbox.Handler) *inbox {
	t.Helper()
	if handle == nil {
		handle = func(context.Context, outbox.Event) error { return nil }
	}
	in := &inbox{handle: handle, arrived: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- b.Subscribe(ctx, group, in.take) }()
	in.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("subscription of %s: %v", group, err)
			}
		case <-time.After(timeout):
			t.Errorf("subscription of %s does not end", group)
		}
	})
	t.Cleanup(in.stop) // before the broker is closed
	return in
}

func (in *inbox) take(ctx context.Context, e outbox.Event) error {
	if err := in.handle(ctx, e); err != nil {
		return err
	}
	e.Payload = append([]byte(nil), e.Payload...)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.got = append(in.got, e)
	close(in.arrived)
	in.arrived = make(chan struct{})
	return nil
}

// events returns the recorded events, and a channel that is closed when another arrives.
func (in *inbox) events() ([]outbox.Event, <-chan struct{}) {
	in.mu.Lock()
	defer in.mu.Unlock()
	return append([]outbox.Event(nil), in.got...), in.arrived
}

// share returns the ids of those events that have arrived at this inbox.
func (in *inbox) share(of []outbox.Event) map[int64]bool {
	mine, got := map[int64]bool{}, map[int64]bool{}
	arrived, _ := in.events()
	for _, e := range arrived {
		got[e.ID] = true
	}
	for _, e := range of {
		if got[e.ID] {
			mine[e.ID] = true
		}
	}
	return mine
}

// wait waits until each of the events has arrived at one of the inboxes.
func wait(t *testing.T, want []outbox.Event, inboxes ...*inbox) {
	t.Helper()
	deadline := time.After(timeout)
	for {
		got := map[int64]bool{}
		more := make(chan struct{}, len(inboxes))
		stop := make(chan struct{})
		for _, in := range inboxes {
			events, arrived := in.events()
			for _, e := range events {
				got[e.ID] = true
			}
			go func() {
				select {
				case <-arrived:
					more <- struct{}{}
				case <-stop:
				}
			}()
		}
		var missing []int64
		for _, e := range want {
			if !got[e.ID] {
				missing = append(missing, e.ID)
			}
		}
		if len(missing) == 0 {
			close(stop)
			return
		}
		select {
		case <-more:
			close(stop)
		case <-deadline:
			close(stop)
			t.Fatalf("%d of %d events did not arrive, among them %d", len(missing), len(want), missing[0])
		}
	}
}

// ready waits until the subscriptions get events. Publishing to a broker that stores nothing fails until then; other
// brokers deliver the first event when they are connected.
func ready(t *testing.T, b outbox.Publisher, inboxes ...*inbox) {
	t.Helper()
	probe := Events(1)
	publishUntilConfirmed(t, b, probe...)
	for _, in := range inboxes {
		wait(t, probe, in)
	}
}
