package consumer

import (
	"context"

	"seckill/service"
	"seckill/service/idgen"
	"seckill/service/outbox"
)

// Points books points for paid orders. Other events are none of its business and leave no record. The order in which
// events arrive does not matter to it: an order is paid once at most, and stays paid.
func Points(store service.PointsStore, opts Options) outbox.Handler {
	return handler(service.PointsConsumer, opts, func(ctx context.Context, id idgen.ID, e service.OrderEvent) (Result, error) {
		entry, ok := service.PointsFor(e)
		if !ok {
			return Ignored, nil
		}
		booked, err := store.BookPoints(ctx, id, entry)
		if err == nil && !booked {
			return Duplicate, nil
		}
		return Took, err
	})
}
