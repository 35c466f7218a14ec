package repository

import (
	"context"
	"time"

	"gorm.io/gorm"

	"seckill/service"
	"seckill/service/idgen"
)

// paymentRow is a row of payment.
type paymentRow struct {
	PaymentID   string
	OrderID     int64
	AmountCents int64
	RefundDue   bool
	CreatedAt   time.Time
}

// TableName is gorm's hook.
func (paymentRow) TableName() string { return "payment" }

// Pay implements service.OrderStore.
func (s *Orders) Pay(ctx context.Context, id idgen.ID, payment service.Payment, eventID idgen.ID) (order service.Order, err error) {
	for range 3 {
		var refusal *service.Error
		err = s.db.change(ctx, func(tx *gorm.DB) (err error) {
			order, refusal, err = s.pay(tx, id, payment, eventID)
			return err
		})
		if err == nil && refusal != nil {
			return order, refusal
		}
		if classify(err) != duplicate {
			break
		}
		// The same payment was recorded for another order at this moment: the next look finds it.
	}
	return order, err
}

// pay is the transaction. Its refusal is one that stands with what was written, so it is not an error here.
func (s *Orders) pay(tx *gorm.DB, id idgen.ID, payment service.Payment, eventID idgen.ID) (service.Order, *service.Error, error) {
	row, now, err := lockOrder(tx, s.db.dialect, id, payment.UserID)
	if err != nil {
		return service.Order{}, nil, err
	}
	order := row.order()
	known, err := s.knownPayment(tx, id, payment)
	switch {
	case err != nil:
		return order, nil, err
	case known != nil && known.RefundDue:
		return order, refundDue(&order), nil
	case known != nil:
		return order, nil, nil
	case order.Status == service.Pending:
		return order, nil, markPaid(tx, &order, payment, eventID, now)
	case payment.HasMoved():
		return order, refundDue(&order), recordRefund(tx, &order, payment, eventID, now)
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

// knownPayment finds a payment that was recorded before.
func (s *Orders) knownPayment(tx *gorm.DB, id idgen.ID, payment service.Payment) (*paymentRow, error) {
	if !payment.HasMoved() {
		return nil, nil
	}
	var rows []paymentRow
	if err := tx.Where("payment_id = ?", payment.ID).Find(&rows).Error; err != nil || len(rows) == 0 {
		return nil, err
	}
	if rows[0].OrderID != int64(id) {
		return nil, service.Invalid("payment_id", "was used for another order; each payment pays one order")
	}
	return &rows[0], nil
}

func markPaid(tx *gorm.DB, o *service.Order, payment service.Payment, eventID idgen.ID, now time.Time) error {
	o.Status, o.PaidAt, o.PayBy = service.Paid, now, time.Time{}
	o.Version++
	err := exactly(1, tx.Exec("UPDATE voucher_order SET status = ?, pay_by = NULL, paid_at = ?, version = version + 1"+
		" WHERE id = ? AND status = ?", service.Paid, now, o.ID, service.Pending))
	if err != nil {
		return err
	}
	return recordPayment(tx, o, payment, service.OrderPaid, eventID, now)
}

// recordRefund notes money that came for an order that could not take it. The order stays as it is but for its version,
// which counts its events.
func recordRefund(tx *gorm.DB, o *service.Order, payment service.Payment, eventID idgen.ID, now time.Time) error {
	o.Version++
	if err := exactly(1, tx.Exec("UPDATE voucher_order SET version = version + 1 WHERE id = ?", o.ID)); err != nil {
		return err
	}
	return recordPayment(tx, o, payment, service.OrderRefundDue, eventID, now)
}

func recordPayment(tx *gorm.DB, o *service.Order, payment service.Payment, kind service.EventType, eventID idgen.ID, now time.Time) error {
	reference := payment.ID
	if !payment.HasMoved() {
		reference = "order " + o.ID.String() // with a space, which no client's reference can have
	}
	row := paymentRow{
		PaymentID: reference, OrderID: int64(o.ID), AmountCents: o.PriceCents,
		RefundDue: kind == service.OrderRefundDue, CreatedAt: now,
	}
	if err := tx.Create(&row).Error; err != nil {
		return err
	}
	e := event{id: eventID, trace: service.TraceParent(tx.Statement.Context), OrderEvent: service.NewOrderEvent(kind, o, now)}
	e.PaymentID = reference
	return appendEvents(tx, []event{e}, now)
}
