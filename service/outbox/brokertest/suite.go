// Package brokertest is the suite that every outbox.Broker has to pass.
package brokertest

import (
	"context"
	"testing"
	"time"

	"seckill/service/outbox"
)

// Config is how the suite gets at a broker, and what that broker cannot do.
type Config struct {
	// Open returns a broker on a topic that nobody has used before, or, given a topic that it returned earlier, another
	// client of the same. Every group of the topic is named from the start. The broker is closed by the test that
	// opened it.
	Open func(t *testing.T, topic string, groups ...string) outbox.Broker

	// Server is the means to break the broker's server; nil for a broker that has none.
	Server Server

	// DeadLetters returns the ids of the events that a group gave up; nil where the broker keeps none.
	DeadLetters func(t *testing.T, topic, group string) []int64

	Forgets   bool          // keeps nothing while nobody subscribes, and answers ErrUnavailable instead
	Unordered bool          // does not keep the events of one key in the order in which they were published
	Oversize  int           // bytes of a payload that the broker refuses for good; 0 if there is no such size
	Pause     time.Duration // the longest that it waits before it delivers an event again; default 5 s
}

// Server is a server that tests break. Its methods fail the test on an error.
type Server interface {
	Stop(t *testing.T)   // it is gone, its data stays
	Start(t *testing.T)  // it is there again
	Freeze(t *testing.T) // connections stay open, nobody answers
	Thaw(t *testing.T)
}

// patience is how long the suite waits for what has to happen.
const patience = 60 * time.Second

// Run runs the whole suite.
func Run(t *testing.T, c Config) {
	if c.Pause == 0 {
		c.Pause = 5 * time.Second
	}
	for _, test := range []struct {
		name string
		run  func(*testing.T, Config)
		skip string // why the broker need not pass
	}{
		{"an event arrives as it was", testContent, ""},
		{"the trace of an event goes with it", testTrace, ""},
		{"every event of large and of parallel batches arrives", testBatches, ""},
		{"every group gets every event", testGroups, ""},
		{"subscriptions of a group share its events", testSharing, ""},
		{"events of one key stay in order", testOrder, unless(!c.Unordered, "its broker keeps no order")},
		{"a failed event comes again and holds up nobody", testRedelivery, ""},
		{"a poison event does not come again", testPoison, ""},
		{"an event is acknowledged after its handler and not before", testUnfinished, unless(!c.Forgets, "it keeps nothing without a subscription")},
		{"events wait for a group that is away", testAbsentGroup, unless(!c.Forgets, "it keeps nothing without a subscription")},
		{"nothing is confirmed that nobody would get", testNobody, unless(c.Forgets, "it keeps events for groups that are away")},
		{"an oversized event is refused and holds up nobody", testOversize, unless(c.Oversize > 0, "it takes events of any size")},
		{"publishing ends with its context", testContext, ""},
		{"closing ends everything", testClose, ""},
		{"a server that is gone is waited for", testServerGone, unless(c.Server != nil, "it has no server")},
		{"a server that freezes is not waited for", testServerFrozen, unless(c.Server != nil, "it has no server")},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.skip != "" {
				t.Skip(test.skip)
			}
			test.run(t, c)
		})
	}
}

// unless returns the reason to skip, unless the condition holds.
func unless(condition bool, reason string) string {
	if condition {
		return ""
	}
	return reason
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}
