// Package outbox carries events from the database that they were committed to, to a broker and on to consumers.
//
// An event is a row that was inserted in the transaction of the change that it tells of, so that neither exists without
// the other. A [Relay] claims such rows, publishes them outside of any transaction, waits for the broker's confirmation,
// and marks them sent. Whatever breaks in between, the row is published again with the same ID: an event reaches the
// broker at least once, and a consumer that records the IDs it has taken lets each one take effect exactly once.
//
// The package computes and waits; rows and connections stay behind [Store] and [Broker], which repository packages
// implement. Package brokertest holds the suite that every Broker has to pass.
package outbox

import "time"

// Event tells one change of one object to whoever is interested.
type Event struct {
	ID        int64     // unique for ever; the same in each delivery. Consumers dedupe by it
	Type      string    // what happened, like ORDER_PAID
	Key       int64     // the object that changed. Brokers that keep an order keep it per key
	Version   int       // of the object, after the change: 1, 2, … Consumers settle a late event by it
	Payload   []byte    // JSON; whoever holds the event may read it and must not change it
	CreatedAt time.Time // by the database's clock, in UTC

	// TraceParent names the trace that the event is part of, in the form of W3C's traceparent header; "" for none. The
	// outbox and brokers carry it as it is: whoever can read it sees to it that it is worth reading.
	TraceParent string
}
