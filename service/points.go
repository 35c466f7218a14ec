package service

import (
	"context"

	"seckill/service/idgen"
)

// PointsConsumer is the name under which points record the events that they have taken.
const PointsConsumer = "points"

// PointsEntry credits a user for a paid order.
type PointsEntry struct {
	OrderID idgen.ID
	UserID  UserID
	Points  int64
}

// PointsStore keeps the points of users.
type PointsStore interface {
	// BookPoints records that the event was taken and books the entry, in one transaction. booked is false if the event
	// had been taken before; nothing is done then. After an error the same call again is safe.
	BookPoints(ctx context.Context, eventID idgen.ID, entry PointsEntry) (booked bool, err error)
}

// PointsFor returns what an event is worth: a point for each whole unit of currency that was paid. Only ORDER_PAID is
// worth anything.
func PointsFor(e OrderEvent) (entry PointsEntry, ok bool) {
	if e.Type != OrderPaid {
		return PointsEntry{}, false
	}
	return PointsEntry{OrderID: e.OrderID, UserID: e.UserID, Points: e.PriceCents / 100}, true
}
