package service

import (
	"context"
	"time"

	"seckill/service/idgen"
)

// Placement is one order on its way into the database, and afterwards its result.
type Placement struct {
	// In: ID, VoucherID, UserID, RequestID, PriceCents. Out: the order as it is stored.
	Order       Order
	EventID     idgen.ID      // of the event that is stored with the order
	PayWithin   time.Duration // time allowed to pay
	TraceParent string        // stored with the event, see WithTraceParent
	// Slot is the order's place among its user's live orders of the voucher, from 0. The store chooses it.
	Slot int

	// Err is the result: nil if the order is stored, else an *Error.
	Err error
	// Replayed: the order was placed before, by a request with the same RequestID.
	Replayed bool

	done chan struct{} // closed when the result is set
}

// OrderStore stores orders. It is the guard: its conditions decide, whatever the checks before it said.
//
// Methods return *Error for refusals: ErrNotFound, ErrUnavailable (nothing was done), ErrUnknown (a commit was sent, and
// ctx ended before its outcome was known), and those named below.
type OrderStore interface {
	// Place commits a batch of orders of one voucher in as few transactions as possible, and sets the result of each.
	// Earlier orders of the batch get the units first. All results are durable when it returns.
	Place(ctx context.Context, voucherID idgen.ID, batch []*Placement)

	// ExistingOrder finds the order that answers a request without placing one: the order with this request id, or else,
	// if the user holds as many live orders as limit allows, the latest of those. ErrNotFound if there is none.
	ExistingOrder(ctx context.Context, voucherID idgen.ID, user UserID, requestID string, limit int) (Order, error)

	// Buyers returns every user who ever placed an order of the voucher, in ascending order. The list is complete as of
	// the moment at which the voucher had that many placed orders, or of a later one.
	Buyers(ctx context.Context, voucherID idgen.ID) (users []UserID, placed int64, err error)

	// Order returns one order.
	Order(ctx context.Context, id idgen.ID) (Order, error)

	// Orders returns a user's orders with ids below before (0 for all), newest first, at most limit.
	Orders(ctx context.Context, user UserID, before idgen.ID, limit int) ([]Order, error)

	// Pay moves a pending order to paid, and records the payment. The same payment again gets the same answer.
	// If the order is not pending and money has moved, the payment is recorded for refund and the error is
	// CodeRefundDue; if no money has moved, a paid order is a success and a closed one is refused with CodeOrderClosed.
	// A payment that was used for another order is refused with CodeInvalid.
	Pay(ctx context.Context, id idgen.ID, payment Payment, eventID idgen.ID) (Order, error)

	// Cancel moves a user's pending order to closed and returns its unit. An order that was cancelled before is a
	// success; one that is paid or expired is refused with CodeOrderPaid or CodeOrderClosed.
	Cancel(ctx context.Context, id idgen.ID, user UserID, eventID idgen.ID) (Order, error)

	// Overdue lists at most limit pending orders whose time to pay has passed, by the database's clock, earliest first.
	Overdue(ctx context.Context, limit int) ([]idgen.ID, error)

	// Expire closes those of the orders that are still pending and overdue, and returns their units to their vouchers.
	// eventIDs has an id for each order. The result is how many units each voucher got back.
	Expire(ctx context.Context, ids, eventIDs []idgen.ID) (map[idgen.ID]int64, error)
}

// VoucherStore stores vouchers and their stock.
type VoucherStore interface {
	// Voucher returns one voucher with its terms as they are now.
	Voucher(ctx context.Context, id idgen.ID) (Voucher, error)

	// Vouchers returns vouchers with ids below before (0 for all), newest first, at most limit.
	Vouchers(ctx context.Context, before idgen.ID, limit int) ([]Voucher, error)

	// Terms returns the stock row alone, and the database's time when it was read.
	Terms(ctx context.Context, id idgen.ID) (Terms, time.Time, error)

	// Create adds a voucher with its stock.
	Create(ctx context.Context, id idgen.ID, v NewVoucher) error

	// Change applies a change by the rules of VoucherChange.Apply.
	Change(ctx context.Context, id idgen.ID, c VoucherChange) error

	// AddStock puts more units on sale. The same request id again changes nothing; it is refused with CodeKeyReused if it
	// was used for another number of units.
	AddStock(ctx context.Context, id idgen.ID, units int64, requestID string) error

	// End ends the sale now, by the database's clock. A sale that has ended does not change.
	End(ctx context.Context, id idgen.ID) error
}

// Instance is a process that serves the shop, as it last reported itself.
type Instance struct {
	Name   string        // unique among the instances of a shop
	Report []byte        // JSON
	Age    time.Duration // since the report, by the database's clock
}
