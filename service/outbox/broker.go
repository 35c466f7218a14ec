package outbox

import (
	"context"
	"errors"
)

// Errors that a Broker tells apart, possibly wrapped: test for them with errors.Is.
var (
	// ErrUnavailable: the broker is away, blocked, or nobody would get the event at present. It says nothing about the
	// event, so it costs the event no attempt. Whether the event was published is unknown.
	ErrUnavailable = errors.New("outbox: broker unavailable")

	// ErrRefused: the broker will never take this event, because it is too large for instance.
	ErrRefused = errors.New("outbox: event refused for good")

	// ErrClosed: the broker was closed.
	ErrClosed = errors.New("outbox: broker is closed")

	// ErrPoison is what a Handler returns for an event that it will never be able to take. The broker keeps the event
	// as a dead letter where it can, and does not deliver it to this group again.
	ErrPoison = errors.New("outbox: event cannot be consumed")
)

// Publisher hands events to a broker.
type Publisher interface {
	// Publish sends the events and waits for the broker's confirmation of each, or until ctx ends; it returns in time
	// even if the client library underneath does not. The result has an entry for each event:
	//
	//   - nil: the broker has stored the event, as durably as it stores anything, and will deliver it to each group.
	//     An event that the broker took but could not route to anybody is not that.
	//   - ErrRefused: never for this event.
	//   - ErrUnavailable, ErrClosed: not now, for no fault of the event.
	//   - any other error: unknown. The event may or may not have been published.
	//
	// Publish is safe for use by many goroutines. It keeps neither events nor their payloads after it has returned,
	// unless it says otherwise. It never delivers an event twice by itself where the broker can prevent it, but callers
	// have to expect it. Events of one call with the same key are published in the order given.
	Publish(ctx context.Context, events []Event) []error
}

// Same is the result of publishing n events that all fare alike.
func Same(n int, err error) []error {
	results := make([]error, n)
	for i := range results {
		results[i] = err
	}
	return results
}

// Handler takes one event. It may be called by several goroutines at once, also for the same event. nil acknowledges
// the event: whatever it caused must be durable by then. ErrPoison gives the event up. Any other error has the event
// delivered again, after a pause that the broker chooses; other events go on meanwhile.
//
// ctx ends when the subscription does; what a handler is at by then, it may finish or break off with an error.
type Handler func(ctx context.Context, e Event) error

// Subscriber delivers events to handlers.
type Subscriber interface {
	// Subscribe delivers every event published from now on to handle, at least once for each group: subscriptions with
	// the same group share its events. A group that existed before gets what was published while nobody subscribed to
	// it, where the broker keeps anything at all.
	//
	// It blocks until ctx ends, and returns nil then, with no handler running any more. While the broker is away it
	// goes on trying. ErrClosed and errors in the configuration end it before.
	Subscribe(ctx context.Context, group string, handle Handler) error
}

// Broker is both sides of one broker.
type Broker interface {
	Publisher
	Subscriber

	// Close ends all subscriptions and calls in progress, and frees what the broker holds, in a bounded time. A second
	// call returns nil.
	Close() error
}
