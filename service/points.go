package service

import (
	"context"

	"seckill/service/idgen"
)

// PointsConsumer is the name under which the points consumer records the events that it has handled.
const PointsConsumer = "points"

// PointsEntry credits a user for a paid order.
type PointsEntry struct {
	OrderID idgen.ID
	UserID  UserID
	Points  int64
}

// PointsStore stores the points of users.
type PointsStore interface {
	// BookPoints records the event as handled and adds the entry, in one transaction. It does nothing and returns false
	// if the event is recorded already. After an error it can safely be called again.
	BookPoints(ctx context.Context, eventID idgen.ID, entry PointsEntry) (booked bool, err error)
}

// PointsFor returns the points for an event: one for each whole unit of currency that was paid. ok is false for events
// other than ORDER_PAID.
func PointsFor(e OrderEvent) (entry PointsEntry, ok bool) {
	if e.Type != OrderPaid {
		return PointsEntry{}, false
	}
	return PointsEntry{OrderID: e.OrderID, UserID: e.UserID, Points: e.PriceCents / 100}, true
}
