package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Errors of brokers and handlers. They may be wrapped; test for them with errors.Is.
var (
	// ErrUnavailable means that the broker cannot be reached, is blocked, or would deliver the event to nobody at
	// present. It is not the event's fault, so it costs the event no attempt. The event may have been published.
	ErrUnavailable = errors.New("outbox: broker unavailable")

	// ErrRefused means that the broker will never accept this event, for example because it is too large.
	ErrRefused = errors.New("outbox: event refused for good")

	// ErrClosed means that the broker was closed.
	ErrClosed = errors.New("outbox: broker is closed")

	// ErrPoison is the error of a Handler for an event that it can never handle. The broker does not deliver the event
	// to this group again, and keeps it as a dead letter if it supports them.
	ErrPoison = errors.New("outbox: event cannot be consumed")
)

// Broker connects the shop to one message broker. To add one, implement this interface in a package below
// repository/broker and run brokertest.Run on it; README.md lists the steps. BrokerBase, Dispatcher and Backoff hold the
// parts that the existing backends share.
type Broker interface {
	Publisher
	Subscriber

	// Close ends all subscriptions and calls in progress and releases the broker's resources, in a bounded time. A
	// second call returns nil.
	Close() error
}

// Publisher sends events to a broker.
type Publisher interface {
	// Publish sends the events and waits until the broker has confirmed each of them or ctx ends. It returns in time even
	// if the client library ignores ctx. The result has one entry for each event:
	//
	//   - nil: the broker has stored the event, as durably as it stores anything, and will deliver it to every group.
	//     An event that the broker accepted but could not route to a group does not count as stored.
	//   - ErrRefused: this event will never be accepted.
	//   - ErrUnavailable, ErrClosed: not now, and not because of the event.
	//   - any other error: unknown. The event may or may not have been published.
	//
	// Publish is safe for concurrent use. It does not retain events or payloads after it returns, unless the backend's
	// documentation says so. Events of one call with the same key are published in the given order. A backend does not
	// publish an event twice on its own where the broker can prevent that, but callers must expect duplicates.
	Publish(ctx context.Context, events []Event) []error
}

// Handler handles one event. It is called concurrently, possibly also for the same event. nil acknowledges the event:
// its effect must be durable by then. ErrPoison gives the event up. After any other error the event is delivered again,
// after a pause that the broker chooses; other events are delivered meanwhile.
//
// ctx ends with the subscription. The handler may then finish its work or return an error.
type Handler func(ctx context.Context, e Event) error

// Subscriber delivers events to handlers.
type Subscriber interface {
	// Subscribe delivers at least every event that is published from now on to handle, at least once for each group.
	// Subscriptions with the same group share its events. A group that existed before also gets what was published
	// while it had no subscription, if the broker stores events at all.
	//
	// It blocks until ctx ends and returns nil then, with no handler running. It reconnects while the broker is
	// unavailable. It returns early only with ErrClosed or an error in the configuration.
	Subscribe(ctx context.Context, group string, handle Handler) error
}

// FailAll returns the result of a Publish that failed for all events in the same way.
func FailAll(events []Event, err error) []error { return slices.Repeat([]error{err}, len(events)) }

// BrokerBase is the part that all backends share: closing the broker ends its calls and subscriptions.
type BrokerBase struct {
	closed context.Context
	close  context.CancelFunc
}

// NewBrokerBase returns the base of an open broker.
func NewBrokerBase() *BrokerBase {
	closed, cancel := context.WithCancel(context.Background())
	return &BrokerBase{closed, cancel}
}

// Close ends the contexts of all calls and subscriptions. A second call does nothing.
func (b *BrokerBase) Close() { b.close() }

// Closed returns a channel that is closed by Close.
func (b *BrokerBase) Closed() <-chan struct{} { return b.closed.Done() }

// Err returns ErrClosed after Close, and nil before.
func (b *BrokerBase) Err() error {
	if b.closed.Err() != nil {
		return ErrClosed
	}
	return nil
}

// bind returns a context that ends with ctx or with Close, whichever comes first.
func (b *BrokerBase) bind(ctx context.Context) (context.Context, context.CancelFunc) {
	bound, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(b.closed, func() { cancel(ErrClosed) })
	return bound, func() { stop(); cancel(nil) }
}

// Publish runs send, whose client library may ignore its context. If ctx ends or the broker is closed first, Publish
// returns ErrUnavailable or ErrClosed for all events; send continues in the background and its result is dropped.
func (b *BrokerBase) Publish(ctx context.Context, events []Event, send func(ctx context.Context) []error) []error {
	if b.Err() != nil || ctx.Err() != nil || len(events) == 0 {
		return FailAll(events, b.cause(ctx))
	}
	ctx, cancel := b.bind(ctx)
	results := make(chan []error, 1)
	go func() {
		defer cancel()
		results <- send(ctx)
	}()
	select {
	case r := <-results:
		return r
	case <-ctx.Done():
		return FailAll(events, b.cause(ctx))
	}
}

func (b *BrokerBase) cause(ctx context.Context) error {
	if err := b.Err(); err != nil {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, context.Cause(ctx))
}

// Subscribe runs consume with a context that ends with ctx or with Close. It returns ErrClosed if the broker is closed,
// and the error of consume otherwise.
func (b *BrokerBase) Subscribe(ctx context.Context, consume func(ctx context.Context) error) error {
	if err := b.Err(); err != nil {
		return err
	}
	ctx, cancel := b.bind(ctx)
	defer cancel()
	err := consume(ctx)
	if closed := b.Err(); closed != nil {
		return closed
	}
	return err
}
