package service

import (
	"context"
	"encoding/json"
	"time"

	"seckill/service/idgen"
)

// EventType is the kind of change of an order.
type EventType string

// Each change of an order has one of these events.
const (
	OrderCreated   EventType = "ORDER_CREATED"
	OrderPaid      EventType = "ORDER_PAID"
	OrderCancelled EventType = "ORDER_CANCELLED"
	OrderExpired   EventType = "ORDER_EXPIRED"
	OrderRefundDue EventType = "ORDER_REFUND_DUE" // a payment arrived that could not be applied
)

// OrderEvent is the payload of an outbox event: the order after the change. Consumers recognize late events by Version.
type OrderEvent struct {
	Type       EventType `json:"type"`
	OrderID    idgen.ID  `json:"order_id"`
	VoucherID  idgen.ID  `json:"voucher_id"`
	UserID     UserID    `json:"user_id,string"`
	Status     string    `json:"status"`
	Version    int       `json:"version"`
	PriceCents int64     `json:"price_cents"`
	PaymentID  string    `json:"payment_id,omitempty"` // with ORDER_PAID and ORDER_REFUND_DUE
	OccurredAt time.Time `json:"occurred_at"`
}

// NewOrderEvent returns the event of a change; o is the order after it.
func NewOrderEvent(t EventType, o *Order, at time.Time) OrderEvent {
	return OrderEvent{
		Type: t, OrderID: o.ID, VoucherID: o.VoucherID, UserID: o.UserID,
		Status: o.Status.String(), Version: o.Version, PriceCents: o.PriceCents, OccurredAt: at.UTC(),
	}
}

// Payload returns the event as JSON.
func (e OrderEvent) Payload() (string, error) {
	b, err := json.Marshal(e)
	return string(b), err
}

// traceKey is the key of the trace in a context.
type traceKey struct{}

// WithTraceParent returns a context for work that is part of a trace, given as a W3C traceparent. The stores write it
// beside the events of that work, so that their consumers continue the same trace.
func WithTraceParent(ctx context.Context, traceParent string) context.Context {
	return context.WithValue(ctx, traceKey{}, traceParent)
}

// TraceParent returns the value of WithTraceParent, or "".
func TraceParent(ctx context.Context) string {
	traceParent, _ := ctx.Value(traceKey{}).(string)
	return traceParent
}

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
