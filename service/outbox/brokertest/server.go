package brokertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"seckill/service/outbox"
)

// bound is how long a call with a context of callTime may take.
const (
	callTime = 2 * time.Second
	bound    = 4 * time.Second
)

// expectAway publishes until the broker is seen to be away, and checks that each call is bounded and blames no event.
func expectAway(t *testing.T, b outbox.Publisher) {
	t.Helper()
	waitFor(t, "the broker to be away", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), callTime)
		defer cancel()
		start := time.Now()
		results := b.Publish(ctx, Events(10))
		if took := time.Since(start); took > bound {
			t.Errorf("publishing to a broker that is away took %v, its context %v", took, callTime)
		}
		away := 0
		for _, err := range results {
			if errors.Is(err, outbox.ErrUnavailable) {
				away++
			} else if err != nil {
				t.Errorf("a broker that is away: %v, want ErrUnavailable", err)
			}
		}
		return away == len(results)
	})
}

func testServerGone(t *testing.T, c Config) {
	topic := Topic()
	b := c.open(t, topic, "points", "late")
	in := subscribe(t, b, "points", nil)
	ready(t, b, in)
	before := Events(50)
	publish(t, b, before...)

	c.Server.Stop(t)
	expectAway(t, b)
	c.Server.Start(t)
	after := Events(50)
	publishUntilConfirmed(t, b, after...)
	wait(t, append(before, after...), in)
	// What was confirmed before the server went is still there for a group that comes now.
	wait(t, append(before, after...), subscribe(t, b, "late", nil))
}

func testServerFrozen(t *testing.T, c Config) {
	b := c.open(t, Topic(), "points")
	in := subscribe(t, b, "points", nil)
	ready(t, b, in)
	c.Server.Freeze(t)
	expectAway(t, b)
	c.Server.Thaw(t)
	after := Events(50)
	publishUntilConfirmed(t, b, after...)
	wait(t, after, in)
}
