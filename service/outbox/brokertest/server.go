package brokertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"seckill/service/outbox"
)

const (
	callTimeout = 2 * time.Second // of the context of one call
	callLimit   = 4 * time.Second // how long that call may take
)

// expectUnavailable publishes until all events fail. It checks that each call returns in time and blames no event.
func expectUnavailable(t *testing.T, b outbox.Publisher) {
	t.Helper()
	waitFor(t, "the broker to be unavailable", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
		defer cancel()
		start := time.Now()
		results := b.Publish(ctx, Events(10))
		if took := time.Since(start); took > callLimit {
			t.Errorf("publishing to an unavailable broker took %v with a context of %v", took, callTimeout)
		}
		failed := 0
		for _, err := range results {
			if errors.Is(err, outbox.ErrUnavailable) {
				failed++
			} else if err != nil {
				t.Errorf("an unavailable broker: %v, want ErrUnavailable", err)
			}
		}
		return failed == len(results)
	})
}

func testServerKilled(t *testing.T, c Config) {
	topic := Topic()
	b := c.open(t, topic, "points", "late")
	in := subscribe(t, b, "points", nil)
	ready(t, b, in)
	before := Events(50)
	publish(t, b, before...)

	c.Server.Stop(t)
	expectUnavailable(t, b)
	c.Server.Start(t)
	after := Events(50)
	publishUntilConfirmed(t, b, after...)
	wait(t, append(before, after...), in)
	// A new group also gets the events that were confirmed before the server was killed.
	wait(t, append(before, after...), subscribe(t, b, "late", nil))
}

func testServerFrozen(t *testing.T, c Config) {
	b := c.open(t, Topic(), "points")
	in := subscribe(t, b, "points", nil)
	ready(t, b, in)
	c.Server.Freeze(t)
	expectUnavailable(t, b)
	c.Server.Thaw(t)
	after := Events(50)
	publishUntilConfirmed(t, b, after...)
	wait(t, after, in)
}
