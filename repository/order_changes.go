package repository

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"

	"seckill/service"
	"seckill/service/idgen"
)

// lockedOrder is an order that no other transaction can change until this one ends, and the database's time.
type lockedOrder struct {
	Row    orderRow `gorm:"embedded"`
	ReadAt dbTime
}

// lockOrder reads and locks an order of the user. Every transaction locks the order before the stock row, as placing does,
// so that no two of them wait for each other.
func lockOrder(tx *gorm.DB, d dialect, id idgen.ID, user service.UserID) (*orderRow, time.Time, error) {
	var found lockedOrder
	err := tx.Raw("SELECT o.*, "+d.now+" AS read_at FROM voucher_order o WHERE o.id = ? AND o.user_id = ?"+d.forUpdate,
		int64(id), int64(user)).Take(&found).Error
	return &found.Row, found.ReadAt.Time, err
}

// Cancel implements service.OrderStore.
func (s *Orders) Cancel(ctx context.Context, id idgen.ID, user service.UserID, eventID idgen.ID) (order service.Order, err error) {
	err = s.db.inTxUntilKnown(ctx, func(tx *gorm.DB) error {
		row, now, err := lockOrder(tx, s.db.dialect, id, user)
		if err != nil {
			return err
		}
		order = row.order()
		switch {
		case order.Status == service.Paid:
			return &service.Error{Code: service.CodeOrderPaid, Message: "the order is paid and cannot be cancelled", Order: &order}
		case order.CloseReason == service.Expired:
			return &service.Error{Code: service.CodeOrderClosed, Message: "the order has expired", Order: &order}
		case order.CloseReason == service.Cancelled:
			return nil
		}
		_, err = closeOrders(tx, []*service.Order{&order}, []idgen.ID{eventID}, service.Cancelled, now)
		return err
	})
	return order, err
}

// Overdue implements service.OrderStore.
func (s *Orders) Overdue(ctx context.Context, limit int) (ids []idgen.ID, err error) {
	err = s.db.read(ctx, func(tx *gorm.DB) error {
		return tx.Raw("SELECT id FROM voucher_order WHERE pay_by <= "+s.db.dialect.now+" ORDER BY pay_by LIMIT ?", limit).Scan(&ids).Error
	})
	return ids, err
}

// Expire implements service.OrderStore. It leaves out orders that another transaction is changing.
func (s *Orders) Expire(ctx context.Context, ids, eventIDs []idgen.ID) (map[idgen.ID]int64, error) {
	var returned map[idgen.ID]int64
	repeated := false
	err := s.db.inTxUntilKnown(ctx, func(tx *gorm.DB) (err error) {
		if repeated {
			if returned, err = expiredBefore(tx, s.db.dialect, eventIDs); err != nil || len(returned) > 0 {
				return err
			}
		}
		repeated = true
		returned, err = expire(tx, s.db.dialect, ids, eventIDs)
		return err
	})
	if err != nil {
		return nil, err
	}
	return returned, nil
}

// expire is the transaction of Expire.
func expire(tx *gorm.DB, d dialect, ids, eventIDs []idgen.ID) (returned map[idgen.ID]int64, err error) {
	var found []lockedOrder
	err = tx.Raw("SELECT o.*, "+d.now+" AS read_at FROM voucher_order o"+
		" WHERE o.id IN ? AND o.status = ? AND o.pay_by <= "+d.now+" ORDER BY o.id"+d.forUpdateSkipLocked,
		ids, service.Pending).Scan(&found).Error
	if err != nil || len(found) == 0 {
		return nil, err
	}
	orders := make([]*service.Order, len(found))
	for i := range found {
		o := found[i].Row.order()
		orders[i] = &o
	}
	return closeOrders(tx, orders, eventIDs, service.Expired, found[0].ReadAt.Time)
}

// expiredBefore finds what an earlier attempt did whose COMMIT was not confirmed, by the events that it wrote. It waits for
// a COMMIT that is still running.
func expiredBefore(tx *gorm.DB, d dialect, eventIDs []idgen.ID) (returned map[idgen.ID]int64, err error) {
	var ids []idgen.ID
	err = tx.Raw("SELECT biz_id FROM outbox_event WHERE event_id IN ?"+d.forShare, eventIDs).Scan(&ids).Error
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	var units []struct {
		VoucherID idgen.ID
		Units     int64
	}
	err = tx.Raw("SELECT voucher_id, COUNT(*) AS units FROM voucher_order WHERE id IN ? GROUP BY voucher_id", ids).Scan(&units).Error
	returned = map[idgen.ID]int64{}
	for _, u := range units {
		returned[u.VoucherID] = u.Units
	}
	return returned, err
}

// closeOrders closes locked pending orders, frees their slots, returns their units, and writes their events. It updates the
// orders that it gets, and returns how many units each voucher got back.
func closeOrders(tx *gorm.DB, orders []*service.Order, eventIDs []idgen.ID, reason service.CloseReason, now time.Time) (map[idgen.ID]int64, error) {
	ids := make([]idgen.ID, len(orders))
	events := make([]event, len(orders))
	units := map[idgen.ID]int64{}
	kind := service.OrderCancelled
	if reason == service.Expired {
		kind = service.OrderExpired
	}
	for i, o := range orders {
		o.Status, o.CloseReason, o.ClosedAt, o.PayBy = service.Closed, reason, now, time.Time{}
		o.Version++
		ids[i] = o.ID
		events[i] = event{id: eventIDs[i], trace: service.TraceParent(tx.Statement.Context), OrderEvent: service.NewOrderEvent(kind, o, now)}
		units[o.VoucherID]++
	}
	err := exactly(len(orders), tx.Exec("UPDATE voucher_order SET status = ?, close_reason = ?, slot = NULL, pay_by = NULL,"+
		" closed_at = ?, version = version + 1 WHERE id IN ? AND status = ?", service.Closed, reason, now, ids, service.Pending))
	if err != nil {
		return nil, err
	}
	if err := appendEvents(tx, events, now); err != nil {
		return nil, err
	}
	for _, voucher := range slices.Sorted(maps.Keys(units)) { // in order, to avoid deadlocks
		err := exactly(1, tx.Exec("UPDATE voucher_stock SET stock = stock + ? WHERE voucher_id = ?", units[voucher], voucher))
		if err != nil {
			return nil, err
		}
	}
	return units, nil
}

// errUnexpectedRows is a defect, never a race: a transaction changed other rows than it had locked.
var errUnexpectedRows = errors.New("a statement changed another number of rows than its transaction had locked")

// exactly returns an error unless the statement changed n rows.
func exactly(n int, result *gorm.DB) error {
	if result.Error == nil && result.RowsAffected != int64(n) {
		return errUnexpectedRows
	}
	return result.Error
}
