// Package brokertest is the conformance suite of outbox.Broker. Every backend runs it against its real server.
package brokertest

import (
	"context"
	"testing"
	"time"

	"seckill/service/outbox"
)

// Config tells the suite how to open a broker and what that broker cannot do.
type Config struct {
	// Open returns a broker on a new topic or, given a topic of an earlier call, another client of that topic. groups are
	// all groups of the topic. The test that opened the broker closes it.
	Open func(t *testing.T, topic string, groups ...string) outbox.Broker

	// Server stops and freezes the broker's server; nil if it has none.
	Server Server

	// DeadLetters returns the ids of the events that a group gave up; nil if the test cannot read them.
	DeadLetters func(t *testing.T, topic, group string) []int64

	StoresNothing bool          // Publish returns ErrUnavailable while a group has no subscription
	Unordered     bool          // does not keep the events of a key in order
	Oversize      int           // size of a payload that the broker refuses for good; 0 if it accepts any size
	Pause         time.Duration // longest pause before an event is delivered again; default 5 s
}

// Server controls a broker's server. Its methods fail the test on an error.
type Server interface {
	Stop(t *testing.T)   // kills it; its data remains
	Start(t *testing.T)  // starts it again
	Freeze(t *testing.T) // connections stay open and nothing is answered
	Thaw(t *testing.T)
}

// timeout limits every wait of the suite.
const timeout = 60 * time.Second

// Run runs the suite.
func Run(t *testing.T, c Config) {
	if c.Pause == 0 {
		c.Pause = 5 * time.Second
	}
	for _, test := range []struct {
		name string
		run  func(*testing.T, Config)
		skip string // why the broker need not pass
	}{
		{"event content is preserved", testContent, ""},
		{"trace context is preserved", testTrace, ""},
		{"large and concurrent batches arrive completely", testBatches, ""},
		{"every group gets every event", testGroups, ""},
		{"subscriptions of a group share its events", testSharing, ""},
		{"events of a key stay in order", testOrder, unless(!c.Unordered, "the broker does not keep order")},
		{"a failed event is delivered again and blocks no other", testRedelivery, ""},
		{"a poison event is not delivered again", testPoison, ""},
		{"an event is acknowledged only after its handler", testUnfinished, unless(!c.StoresNothing, "it stores nothing")},
		{"events wait for a group without a subscription", testAbsentGroup, unless(!c.StoresNothing, "it stores nothing")},
		{"nothing is confirmed without a subscription", testNobody, unless(c.StoresNothing, "it stores events")},
		{"an oversized event is refused and blocks no other", testOversize, unless(c.Oversize > 0, "it accepts events of any size")},
		{"publish ends with its context", testContext, ""},
		{"close ends everything", testClose, ""},
		{"recovers when its server was killed", testServerKilled, unless(c.Server != nil, "it has no server")},
		{"recovers when its server was frozen", testServerFrozen, unless(c.Server != nil, "it has no server")},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.skip != "" {
				t.Skip(test.skip)
			}
			test.run(t, c)
		})
	}
}

// unless returns the reason for skipping a test if the condition does not hold.
func unless(condition bool, reason string) string {
	if condition {
		return ""
	}
	return reason
}

func deadline(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	t.Cleanup(cancel)
	return ctx
}
