package service

import (
	"encoding/json"
	"time"

	"seckill/service/idgen"
)

// EventType says what happened to an order.
type EventType string

// One event for each change of an order.
const (
	OrderCreated   EventType = "ORDER_CREATED"
	OrderPaid      EventType = "ORDER_PAID"
	OrderCancelled EventType = "ORDER_CANCELLED"
	OrderExpired   EventType = "ORDER_EXPIRED"
	OrderRefundDue EventType = "ORDER_REFUND_DUE" // a payment arrived that could not be applied
)

// OrderEvent is the payload of an outbox event: the order as the change left it. Consumers settle events that arrive
// out of order by Version.
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

// NewOrderEvent describes a change that left the order as it is passed in.
func NewOrderEvent(t EventType, o *Order, at time.Time) OrderEvent {
	return OrderEvent{
		Type: t, OrderID: o.ID, VoucherID: o.VoucherID, UserID: o.UserID,
		Status: o.Status.String(), Version: o.Version, PriceCents: o.PriceCents, OccurredAt: at.UTC(),
	}
}

// Payload is the event as JSON. It cannot fail for an order that was read from or is going to the database.
func (e OrderEvent) Payload() (string, error) {
	b, err := json.Marshal(e)
	return string(b), err
}
