// Package consumer passes events from a broker to the use cases that they trigger. A broker delivers an event at least once.
// Each use case inserts a record of the event first, in the transaction of its effect, so the effect happens once.
package consumer

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"seckill/service"
	"seckill/service/idgen"
	"seckill/service/outbox"
)

// Result is the result of a delivery.
type Result string

// The results, as metric labels.
const (
	Took      Result = "took"      // the event took effect
	Duplicate Result = "duplicate" // it had taken effect before
	Ignored   Result = "ignored"   // this consumer does not use events of its type
	Failed    Result = "failed"    // it will be delivered again
	Poison    Result = "poison"    // it will not be delivered again
)

// Observer receives the result of each delivery, for metrics. It must not block and must be safe for concurrent use.
type Observer interface {
	Consumed(group string, result Result, took time.Duration)
}

// NoObserver ignores all events.
type NoObserver struct{}

// Consumed implements Observer.
func (NoObserver) Consumed(string, Result, time.Duration) {}

// timeout limits the handling of one event, including repeated attempts at a busy database.
const timeout = 30 * time.Second

// Points credits points for paid orders and ignores other events. It does not depend on the order of events, because an
// order is paid at most once and stays paid.
func Points(store service.PointsStore, observer Observer) outbox.Handler {
	return handler(service.PointsConsumer, observer, func(ctx context.Context, id idgen.ID, e service.OrderEvent) (Result, error) {
		entry, ok := service.PointsFor(e)
		if !ok {
			return Ignored, nil
		}
		return result(store.BookPoints(ctx, id, entry))
	})
}

// Notification queues a notification for each change of an order. The service.Notifier sends them in the order of their
// versions, so a slow receiver delays no event and keeps no transaction open.
func Notification(store service.NotificationStore, observer Observer) outbox.Handler {
	return handler(service.NotificationConsumer, observer, func(ctx context.Context, id idgen.ID, e service.OrderEvent) (Result, error) {
		return result(store.AddNotification(ctx, service.Notification{EventID: id, Event: e}))
	})
}

func result(first bool, err error) (Result, error) {
	if err == nil && !first {
		return Duplicate, nil
	}
	return Took, err
}

// handler returns the outbox.Handler of a use case.
func handler(group string, observer Observer, handle func(context.Context, idgen.ID, service.OrderEvent) (Result, error)) outbox.Handler {
	return func(ctx context.Context, e outbox.Event) error {
		start := time.Now()
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		order, err := decode(e)
		result := Poison
		if err == nil {
			if result, err = handle(ctx, idgen.ID(e.ID), order); err != nil {
				result, err = Failed, fmt.Errorf("%s: event %d: %w", group, e.ID, err)
			}
		}
		observer.Consumed(group, result, time.Since(start))
		return err
	}
}

// decode reads the payload. It fails with ErrPoison if that does not match the event. It ignores unknown fields, which a
// later version may have added.
func decode(e outbox.Event) (service.OrderEvent, error) {
	var order service.OrderEvent
	if err := json.Unmarshal(e.Payload, &order); err != nil {
		return order, fmt.Errorf("%w: event %d: %w", outbox.ErrPoison, e.ID, err)
	}
	if e.ID <= 0 || string(order.Type) != e.Type || int64(order.OrderID) != e.Key || order.Version != e.Version {
		return order, fmt.Errorf("%w: event %d: payload is of %s %d version %d, envelope of %s %d version %d",
			outbox.ErrPoison, e.ID, order.Type, order.OrderID, order.Version, e.Type, e.Key, e.Version)
	}
	return order, nil
}
