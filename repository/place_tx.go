package repository

import (
	"context"
	"errors"
	"time"

	"gorm.io/gorm"

	"seckill/service"
	"seckill/service/idgen"
)

// The reasons not to commit the transaction that places orders, although the database did not fail.
var (
	errTooMany        = errors.New("the orders are larger than the server's max_allowed_packet")
	errRefusedByIndex = errors.New("a unique index refused some of the orders")
	errStaleTerms     = errors.New("the terms that were read are out of date: units are missing, or the time is wrong")
)

// orderBytes is an upper bound for the size of one order and its event in a message.
const orderBytes = 1 << 10

// placeAll places all of the orders in one transaction, or none: orders, their events, and last the stock row, so that
// its lock is held for the shortest time.
func (s *Orders) placeAll(ctx context.Context, voucherID idgen.ID, orders []*service.Placement, now time.Time) error {
	if len(orders) > s.db.maxOrders {
		return errTooMany
	}
	events := make([]event, len(orders))
	for i, p := range orders {
		p.Order.Status, p.Order.CloseReason, p.Order.Version = service.Pending, 0, 1
		p.Order.CreatedAt, p.Order.PayBy = now, now.Add(p.PayWithin)
		events[i] = event{id: p.EventID, trace: p.TraceParent, OrderEvent: service.NewOrderEvent(service.OrderCreated, &p.Order, now)}
	}
	return s.db.inTx(ctx, func(tx *gorm.DB) error {
		if s.db.dialect.multiStatement && guardIsOneStatement {
			return s.placeInOneMessage(ctx, tx, voucherID, orders, events, now)
		}
		return s.placeByStatements(tx, voucherID, orders, events, now)
	})
}

// placeByStatements sends the statements of the transaction one after the other.
func (s *Orders) placeByStatements(tx *gorm.DB, voucherID idgen.ID, orders []*service.Placement, events []event, now time.Time) error {
	insert, args := s.insertOrdersSQL(orders, now)
	inserted := tx.Exec(insert, args...)
	switch {
	case inserted.Error != nil:
		return inserted.Error
	case int(inserted.RowsAffected) != len(orders):
		return errRefusedByIndex
	}
	if err := appendEvents(tx, events, now); err != nil {
		return err
	}
	taken, err := takeUnits(tx, s.db.dialect, voucherID, len(orders), now)
	if err == nil && !taken {
		err = errStaleTerms
	}
	return err
}

const (
	// messageTimeout bounds a message, including its wait for the stock row. A query that is killed between two statements
	// gets no answer at all (seen with MySQL 9.7 and MariaDB 10.11): the connection is closed then, and the batch tried again.
	messageTimeout = lockWait + time.Second
	// maxClockGap bounds the time between reading the terms and taking the units. It is longer only if the machine slept in
	// between or the database's clock was set; the orders' times would be wrong then.
	maxClockGap = 2 * lockWait
)

// placeInOneMessage sends the statements of the transaction as one message: one round trip instead of three. The last
// statement returns how many rows the others changed. The stock changes only if all orders were inserted.
func (s *Orders) placeInOneMessage(ctx context.Context, tx *gorm.DB, voucherID idgen.ID, orders []*service.Placement, events []event, now time.Time) error {
	ordersSQL, args := s.insertOrdersSQL(orders, now)
	eventsSQL, eventArgs, err := insertEventsSQL(events, now)
	if err != nil {
		return err
	}
	unitsSQL, unitArgs := takeUnitsSQL(s.db.dialect, voucherID, len(orders), now)
	message := ordersSQL + "; SET @inserted = ROW_COUNT(); " + eventsSQL + "; " + unitsSQL + " AND @inserted = ?; " +
		"SELECT @inserted, ROW_COUNT(), " + s.db.dialect.nowAtRow
	args = append(append(append(args, eventArgs...), unitArgs...), len(orders))

	ctx, cancel := context.WithTimeout(ctx, messageTimeout)
	defer cancel()
	rows, err := tx.Statement.ConnPool.QueryContext(ctx, message, args...) // gorm would examine each argument
	if err != nil {
		return err
	}
	var inserted, taken int
	var late dbTime
	if rows.Next() {
		err = rows.Scan(&inserted, &taken, &late)
	}
	if err = errors.Join(err, rows.Err(), rows.Close()); err != nil {
		return err
	}
	gap := late.Sub(now)
	switch {
	case inserted != len(orders):
		return errRefusedByIndex
	case taken != 1, gap < 0, gap > maxClockGap:
		return errStaleTerms // the terms have to be read again
	}
	return nil
}

// insertOrdersSQL builds the INSERT of orders. It skips the orders that a unique index refuses.
func (s *Orders) insertOrdersSQL(orders []*service.Placement, createdAt any) (sql string, args []any) {
	args = make([]any, 0, 10*len(orders))
	for _, p := range orders {
		o := &p.Order
		args = append(args, int64(o.ID), int64(o.VoucherID), int64(o.UserID), slotOf(p), o.RequestID,
			int64(o.Status), o.Version, o.PriceCents, createdAt, o.PayBy)
	}
	return insertInto("voucher_order", len(orders), "id", "voucher_id", "user_id", "slot", "request_id",
		"status", "version", "price_cents", "created_at", "pay_by") + s.db.dialect.onConflictDoNothing("voucher_order", "id"), args
}
