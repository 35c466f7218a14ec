package service

import (
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
