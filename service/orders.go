package service

import (
	"context"

	"seckill/service/idgen"
)

// MaxPage is the most rows of one page of a list.
const MaxPage = 100

// Order returns an order of the user; ErrNotFound also if it belongs to another user.
func (s *Shop) Order(ctx context.Context, user UserID, id idgen.ID) (Order, error) {
	o, err := s.cfg.Orders.Order(ctx, id)
	if err == nil && o.UserID != user {
		return Order{}, ErrNotFound
	}
	return o, err
}

// Orders returns a page of the user's orders, newest first: those with ids below before, or the newest if before is 0. A
// full page means that there may be more.
func (s *Shop) Orders(ctx context.Context, user UserID, before idgen.ID, limit int) ([]Order, error) {
	return s.cfg.Orders.Orders(ctx, user, before, max(1, min(limit, MaxPage)))
}

// Payment is a payment for an order.
type Payment struct {
	// ID is the payment provider's reference, which identifies a repeated payment. "" means that no money has moved: the
	// shop uses a reference of its own, and paying a closed order is refused, not recorded for refund.
	ID     string
	UserID UserID // the payer; an order of another user is ErrNotFound
}

// HasMoved reports whether money has moved already, so that a payment that cannot be applied is due for refund.
func (p Payment) HasMoved() bool { return p.ID != "" }

// PayOrder pays a pending order. The same payment again gets the same answer.
//
// If the order was closed, or paid by another payment, and money has moved, the payment is recorded for refund and the
// error is CodeRefundDue. If no money has moved, the error is CodeOrderClosed, or nil for a paid order.
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

// CancelOrder closes a pending order of the user and returns its unit. Cancelling again gets the same answer.
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
		s.cfg.WakeRelay()
	}
	return order, err
}
