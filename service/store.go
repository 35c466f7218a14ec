package service

import (
	"context"
	"time"

	"seckill/service/idgen"
)

// Placement is one order on its way into the database, and afterwards its verdict.
type Placement struct {
	Order     Order         // in: ID, VoucherID, UserID, RequestID, PriceCents; out: as it stands
	EventID   idgen.ID      // of the event to be written with it
	PayWithin time.Duration // sets Order.PayBy

	// TraceParent names the trace that the order is placed in, as W3C's traceparent header does; "" for none. It goes
	// with the event.
	TraceParent string

	// Slot is the order's place among its user's live orders of the voucher, from 0. The store chooses it.
	Slot int

	// Err is the verdict: nil if the order stands, else an *Error.
	Err error
	// Replayed: the order had been placed by an earlier request with the same RequestID.
	Replayed bool
}

// OrderStore keeps orders, and is the guard: its conditions decide, whatever stood before it.
//
// Methods return *Error for refusals: ErrNotFound, ErrUnavailable (nothing was done), ErrUnknown (a commit was sent and
// its outcome could not be learnt before ctx ended), and those named below.
type OrderStore interface {
	// Place commits a batch of orders of one voucher in as few transactions as their conditions allow, and sets the
	// verdict of each. Orders that come first get the units first. All verdicts are durable when it returns.
	Place(ctx context.Context, voucherID idgen.ID, batch []*Placement)

	// Standing finds the order that answers a request without placing one: the order with this request id, or else,
	// if the user holds as many live orders as limit allows, the latest of those. ErrNotFound if there is none.
	Standing(ctx context.Context, voucherID idgen.ID, user UserID, requestID string, limit int) (Order, error)

	// Buyers returns every user who ever placed an order of the voucher, ascending, complete as of a moment at which
	// exactly placed orders had been placed, or of a later one.
	Buyers(ctx context.Context, voucherID idgen.ID) (users []UserID, placed int64, err error)

	// Order returns one order.
	Order(ctx context.Context, id idgen.ID) (Order, error)

	// Orders returns a user's orders with ids below before (0 for all), newest first, at most limit.
	Orders(ctx context.Context, user UserID, before idgen.ID, limit int) ([]Order, error)

	// Pay moves a pending order to paid, and records the payment. The same payment again gets the same answer.
	// If the order is not pending: with a payment that has moved, the payment is recorded for refund and the error is
	// CodeRefundDue; without, a paid order is a success and a closed one is refused with CodeOrderClosed. A payment
	// that was used for another order is refused with CodeInvalid.
	Pay(ctx context.Context, id idgen.ID, payment Payment, eventID idgen.ID) (Order, error)

	// Cancel moves a user's pending order to closed and returns its unit. An order that was cancelled before is a
	// success; one that is paid or expired is refused with CodeOrderPaid or CodeOrderClosed.
	Cancel(ctx context.Context, id idgen.ID, user UserID, eventID idgen.ID) (Order, error)

	// Overdue lists at most limit pending orders whose time to pay is over, by the database's clock, earliest first.
	Overdue(ctx context.Context, limit int) ([]idgen.ID, error)

	// Expire closes those of the orders that are still pending and overdue, and returns their units; eventIDs are used
	// in the same order. It returns how many units each voucher got back.
	Expire(ctx context.Context, ids, eventIDs []idgen.ID) (map[idgen.ID]int64, error)
}

// VoucherStore keeps vouchers and their stock.
type VoucherStore interface {
	// Voucher returns one voucher with its terms as they are now.
	Voucher(ctx context.Context, id idgen.ID) (Voucher, error)

	// Vouchers returns vouchers with ids below before (0 for all), newest first, at most limit.
	Vouchers(ctx context.Context, before idgen.ID, limit int) ([]Voucher, error)

	// Terms returns the hot row alone and the database's time when it was read.
	Terms(ctx context.Context, id idgen.ID) (Terms, time.Time, error)

	// Create adds a voucher with its stock.
	Create(ctx context.Context, id idgen.ID, v NewVoucher) error

	// Change applies a change. It refuses with CodeInvalid what would leave an order outside of its terms: a lower
	// limit, a start that moves after the sale has begun, an end in the past.
	Change(ctx context.Context, id idgen.ID, c VoucherChange) error

	// AddStock puts units more on sale. The same request id again changes nothing, and is refused with CodeKeyReused if it
	// was used for another number of units.
	AddStock(ctx context.Context, id idgen.ID, units int64, requestID string) error

	// End ends the sale now, by the database's clock. A sale that is over stays as it is.
	End(ctx context.Context, id idgen.ID) error
}
