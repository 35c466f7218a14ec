package service

import (
	"context"

	"seckill/service/idgen"
)

// Payment says that money for an order is there.
type Payment struct {
	// ID is the payment provider's reference, by which the same payment is known again. Without one, the shop's own is
	// used, and paying a closed order is refused instead of being recorded for refund: no money has moved then.
	ID     string
	UserID UserID // who pays; an order of somebody else is ErrNotFound
}

// HasMoved tells whether money has moved already, so that a payment that cannot be applied is due for refund.
func (p Payment) HasMoved() bool { return p.ID != "" }

// PayOrder pays a pending order. Paying again with the same payment answers the same.
//
// If the order was closed before (or paid by another payment) and the money has moved, the payment is recorded for
// refund and the error is CodeRefundDue; if it has not, the error is CodeOrderClosed, or nil for a paid order.
func (s *Shop) PayOrder(ctx context.Context, user UserID, id idgen.ID, paymentID string) (Order, error) {
	if paymentID != "" {
		if err := validReference("payment_id", paymentID); err != nil {
			return Order{}, err
		}
	}
	return s.changeOrder(ctx, func(eventID idgen.ID) (Order, error) {
		return s.cfg.Orders.Pay(ctx, id, Payment{ID: paymentID, UserID: user}, eventID)
	})
}

// CancelOrder closes a pending order of the user and returns its unit. Cancelling again answers the same.
func (s *Shop) CancelOrder(ctx context.Context, user UserID, id idgen.ID) (Order, error) {
	return s.changeOrder(ctx, func(eventID idgen.ID) (Order, error) {
		return s.cfg.Orders.Cancel(ctx, id, user, eventID)
	})
}

// changeOrder gives a change its event id, and wakes the relay.
func (s *Shop) changeOrder(ctx context.Context, change func(eventID idgen.ID) (Order, error)) (Order, error) {
	eventID, err := s.cfg.IDs.Next(ctx)
	if err != nil {
		return Order{}, Unavailable(err)
	}
	order, err := change(eventID)
	if err == nil || CodeOf(err) == CodeRefundDue {
		s.cfg.Changed()
	}
	return order, err
}
