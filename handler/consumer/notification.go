package consumer

import (
	"context"

	"seckill/service"
	"seckill/service/idgen"
	"seckill/service/outbox"
)

// Notification queues a notification for each change of an order. Sending them, in the order of the versions, is the
// service.Notifier's work: whatever it takes, it does not hold events up, and no transaction stays open for it.
func Notification(store service.NotificationStore, opts Options) outbox.Handler {
	return handler(service.NotificationConsumer, opts, func(ctx context.Context, id idgen.ID, e service.OrderEvent) (Result, error) {
		added, err := store.AddNotification(ctx, service.Notification{EventID: id, Event: e})
		if err == nil && !added {
			return Duplicate, nil
		}
		return Took, err
	})
}
