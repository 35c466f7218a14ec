// Package consumer turns events from a broker into calls of the service. A broker delivers an event at least once; that
// it takes effect once is due to the record that each use case inserts first, in the transaction of the effect.
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

// Result is what became of a delivery.
type Result string

// The results, as metric labels.
const (
	Took      Result = "took"      // the event took effect
	Duplicate Result = "duplicate" // it had done so before
	Ignored   Result = "ignored"   // it is of no concern to this consumer
	Failed    Result = "failed"    // it will be delivered again
	Poison    Result = "poison"    // it will not
)

// Options of a consumer. The zero value of a field stands for its default.
type Options struct {
	// Timeout bounds the handling of one event, repeated attempts at a busy database included. Default 30 s.
	Timeout time.Duration
	// Observe is told of each delivery; it must not block. Default: nobody is.
	Observe func(group string, result Result, took time.Duration)
}

// take is one use case of an event.
type take func(ctx context.Context, id idgen.ID, e service.OrderEvent) (Result, error)

// handler wraps a use case with what all consumers share.
func handler(group string, opts Options, take take) outbox.Handler {
	if opts.Timeout <= 0 {
		opts.Timeout = 30 * time.Second
	}
	if opts.Observe == nil {
		opts.Observe = func(string, Result, time.Duration) {}
	}
	return func(ctx context.Context, e outbox.Event) error {
		start := time.Now()
		ctx, cancel := context.WithTimeout(ctx, opts.Timeout)
		defer cancel()
		result, err := Poison, error(nil)
		var order service.OrderEvent
		if order, err = decode(e); err == nil {
			if result, err = take(ctx, idgen.ID(e.ID), order); err != nil {
				result, err = Failed, fmt.Errorf("%s: event %d: %w", group, e.ID, err)
			}
		}
		opts.Observe(group, result, time.Since(start))
		return err
	}
}

// decode reads the payload and refuses one that does not belong to its event. Unknown fields are a later version's.
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
