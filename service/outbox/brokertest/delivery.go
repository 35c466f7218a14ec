package brokertest

import (
	"bytes"
	"math"
	"sync"
	"testing"
	"time"

	"seckill/service/outbox"
)

func testContent(t *testing.T, c Config) {
	b := c.open(t, Topic(), "points")
	in := subscribe(t, b, "points", nil)
	ready(t, b, in)
	events := Events(4)
	events[0].Payload = []byte(`{"title":"秒杀 🎫 \u0000 \"quoted\"", "n": 9007199254740993}`)
	events[1].Payload = bytes.Repeat([]byte("0123456789"), 20_000)
	// Committed long ago: the broker was unavailable, or an operator retried the event.
	events[2] = outbox.Event{ID: math.MaxInt64, Key: math.MaxInt64, Version: math.MaxInt32, Type: "T",
		Payload: []byte("null"), CreatedAt: time.Date(2026, 2, 28, 23, 59, 59, 999e6, time.UTC)}
	events[3].Payload = []byte(`{}`)
	publish(t, b, events...)
	wait(t, events, in)
	got, _ := in.events()
	for _, want := range events {
		for _, e := range got {
			if e.ID == want.ID && (e.Type != want.Type || e.Key != want.Key || e.Version != want.Version ||
				!bytes.Equal(e.Payload, want.Payload) || !e.CreatedAt.Equal(want.CreatedAt)) {
				t.Errorf("published %.300v, arrived %.300v", want, e)
			}
		}
	}
}

func testTrace(t *testing.T, c Config) {
	b := c.open(t, Topic(), "points")
	in := subscribe(t, b, "points", nil)
	ready(t, b, in)
	events := Events(3)
	events[0].TraceParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	events[2].TraceParent = "00-ffffffffffffffffffffffffffffffff-00f067aa0ba902b7-00"
	publish(t, b, events...)
	wait(t, events, in)
	got, _ := in.events()
	for _, want := range events {
		for _, e := range got {
			if e.ID == want.ID && e.TraceParent != want.TraceParent {
				t.Errorf("published with trace %q, arrived with %q", want.TraceParent, e.TraceParent)
			}
		}
	}
}

func testBatches(t *testing.T, c Config) {
	b := c.open(t, Topic(), "points")
	in := subscribe(t, b, "points", nil)
	ready(t, b, in)
	if results := b.Publish(deadline(t), nil); len(results) != 0 {
		t.Errorf("an empty batch has %d results", len(results))
	}
	all := Events(3000)
	var publishing sync.WaitGroup
	for part := range 6 {
		publishing.Go(func() {
			events := all[part*500 : (part+1)*500]
			for i, err := range b.Publish(deadline(t), events) {
				if err != nil {
					t.Errorf("event %d: %v", events[i].ID, err)
				}
			}
		})
	}
	publishing.Wait()
	wait(t, all, in)
}

func testGroups(t *testing.T, c Config) {
	b := c.open(t, Topic(), "points", "notification")
	points, notification := subscribe(t, b, "points", nil), subscribe(t, b, "notification", nil)
	ready(t, b, points, notification)
	events := Events(50)
	publish(t, b, events...)
	wait(t, events, points)
	wait(t, events, notification)
}

func testSharing(t *testing.T, c Config) {
	topic := Topic()
	b := c.open(t, topic, "points")
	one, two := subscribe(t, b, "points", nil), subscribe(t, b, "points", nil)
	ready(t, b)
	before := Events(100)
	publish(t, b, before...)
	wait(t, before, one, two)
	for start := time.Now(); ; { // while a group rebalances, one subscription may get everything, and events may be delivered twice
		events := Events(100)
		publish(t, b, events...)
		wait(t, events, one, two)
		// A subscription that got events of this round has finished the one before, which can be checked now.
		if len(one.share(events)) > 0 && len(two.share(events)) > 0 {
			first, second := one.share(before), two.share(before)
			if len(first)+len(second) < len(before)*3/2 && min(len(first), len(second)) > 0 {
				return
			}
		}
		if time.Since(start) > timeout {
			t.Fatalf("of the last %d events one subscription got %d and the other %d", len(before), len(one.share(before)), len(two.share(before)))
		}
		before = events
	}
}

func testOrder(t *testing.T, c Config) {
	b := c.open(t, Topic(), "points")
	in := subscribe(t, b, "points", nil)
	ready(t, b, in)
	const keys, versions = 20, 25
	events := Events(keys * versions)
	for i := range events {
		events[i].Key, events[i].Version = int64(1+i%keys), 1+i/keys
	}
	publish(t, b, events...)
	wait(t, events, in)
	latest := map[int64]int{}
	got, _ := in.events()
	for _, e := range got {
		if e.Key > keys {
			continue // the event of ready
		}
		if e.Version < latest[e.Key] {
			t.Fatalf("key %d: version %d arrived after %d", e.Key, e.Version, latest[e.Key])
		}
		latest[e.Key] = e.Version
	}
}
