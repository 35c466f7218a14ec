package repository

import (
	"context"
	"time"

	"gorm.io/gorm"

	"seckill/service"
	"seckill/service/idgen"
)

// Pay implements service.OrderStore.
func (s *Orders) Pay(ctx context.Context, id idgen.ID, payment service.Payment, eventID idgen.ID) (order service.Order, err error) {
	var refusal *service.Error
	err = s.db.inTxUntilKnown(ctx, func(tx *gorm.DB) (err error) {
		order, refusal, err = s.pay(tx, id, payment, eventID)
		return err
	})
	if err == nil && refusal != nil {
		return order, refusal
	}
	return order, err
}

// pay is the transaction of Pay. It returns a refusal, unlike an error, together with changes that are to be committed.
func (s *Orders) pay(tx *gorm.DB, id idgen.ID, payment service.Payment, eventID idgen.ID) (service.Order, *service.Error, error) {
	row, now, err := lockOrder(tx, s.db.dialect, id, payment.UserID)
	if err != nil {
		return service.Order{}, nil, err
	}
	order := row.order()
	known, err := knownPayment(tx, id, payment)
	switch {
	case err != nil:
		return order, nil, err
	case known != nil && known.RefundDue:
		return order, refundDue(&order), nil
	case known != nil:
		return order, nil, nil
	case order.Status == service.Pending:
		return order, nil, s.markPaid(tx, &order, payment, eventID, now)
	case payment.HasMoved():
		return order, refundDue(&order), s.recordRefund(tx, &order, payment, eventID, now)
	case order.Status == service.Paid:
		return order, nil, nil
	}
	return order, nil, &service.Error{Code: service.CodeOrderClosed, Message: "the order is closed and cannot be paid", Order: &order}
}

func refundDue(o *service.Order) *service.Error {
	return &service.Error{
		Code:    service.CodeRefundDue,
		Message: "the payment could not be applied to the order and was recorded for refund",
		Order:   o,
	}
}

// errPaymentUsed refuses a payment that was recorded for another order.
func errPaymentUsed() error {
	return service.Invalid("payment_id", "was used for another order; each payment pays one order")
}

// paymentRow is a row of payment.
type paymentRow struct {
	OrderID   int64
	RefundDue bool
}

// knownPayment finds a payment of the order that was recorded before; nil if there is none.
func knownPayment(tx *gorm.DB, id idgen.ID, payment service.Payment) (*paymentRow, error) {
	if !payment.HasMoved() {
		return nil, nil
	}
	var rows []paymentRow
	err := tx.Raw("SELECT order_id, refund_due FROM payment WHERE payment_id = ?", payment.ID).Scan(&rows).Error
	switch {
	case err != nil, len(rows) == 0:
		return nil, err
	case rows[0].OrderID != int64(id):
		return nil, errPaymentUsed()
	}
	return &rows[0], nil
}

func (s *Orders) markPaid(tx *gorm.DB, o *service.Order, payment service.Payment, eventID idgen.ID, now time.Time) error {
	o.Status, o.PaidAt, o.PayBy = service.Paid, now, time.Time{}
	o.Version++
	err := exactly(1, tx.Exec("UPDATE voucher_order SET status = ?, pay_by = NULL, paid_at = ?, version = version + 1"+
		" WHERE id = ? AND status = ?", service.Paid, now, o.ID, service.Pending))
	if err != nil {
		return err
	}
	return s.recordPayment(tx, o, payment, service.OrderPaid, eventID, now)
}

// recordRefund records money for an order that cannot take it. Of the order, only the version changes: it counts events.
func (s *Orders) recordRefund(tx *gorm.DB, o *service.Order, payment service.Payment, eventID idgen.ID, now time.Time) error {
	o.Version++
	if err := exactly(1, tx.Exec("UPDATE voucher_order SET version = version + 1 WHERE id = ?", o.ID)); err != nil {
		return err
	}
	return s.recordPayment(tx, o, payment, service.OrderRefundDue, eventID, now)
}

// recordPayment inserts the payment and its event. If another transaction is recording the same payment for another
// order, the insert waits for its outcome.
func (s *Orders) recordPayment(tx *gorm.DB, o *service.Order, payment service.Payment, kind service.EventType, eventID idgen.ID, now time.Time) error {
	reference := payment.ID
	if !payment.HasMoved() {
		reference = "order " + o.ID.String() // with a space, which no client's reference can have
	}
	inserted := tx.Exec("INSERT INTO payment (payment_id, order_id, amount_cents, refund_due, created_at) VALUES (?, ?, ?, ?, ?)"+
		s.db.dialect.onConflictDoNothing("payment", "payment_id"), reference, o.ID, o.PriceCents, kind == service.OrderRefundDue, now)
	switch {
	case inserted.Error != nil:
		return inserted.Error
	case inserted.RowsAffected == 0:
		return errPaymentUsed()
	}
	e := event{id: eventID, trace: service.TraceParent(tx.Statement.Context), OrderEvent: service.NewOrderEvent(kind, o, now)}
	e.PaymentID = reference
	return appendEvents(tx, []event{e}, now)
}
