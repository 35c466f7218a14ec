package repository

import (
	"errors"
	"time"

	"gorm.io/gorm"

	"seckill/service"
)

// Outcomes of a transaction that is rolled back without a fault.
var (
	errNothingToPlace = errors.New("every order was refused by a unique index")
	errNoUnit         = errors.New("the units were taken by somebody else")
)

// place is the transaction of message, statement by statement. It returns those of the orders that are in it; the others
// were refused by a unique index and cost their neighbours nothing.
func (r *round) place(tx *gorm.DB, orders []candidate, now time.Time) (placed []candidate, err error) {
	if placed, err = r.insertOrders(tx, orders); err != nil {
		return nil, err
	}
	if len(placed) == 0 {
		return nil, errNothingToPlace
	}
	if err := appendEvents(tx, createdEvents(placed, now), now); err != nil {
		return nil, err
	}
	taken, err := takeUnits(tx, r.db.dialect, r.voucherID, len(placed), now)
	if err != nil {
		return nil, err
	}
	if !taken {
		return nil, errNoUnit
	}
	return placed, nil
}

// makePending gives orders the state and the times with which they are placed.
func makePending(orders []candidate, now time.Time) {
	for _, c := range orders {
		c.Order.Status, c.Order.CloseReason, c.Order.Version = service.Pending, 0, 1
		c.Order.CreatedAt, c.Order.PayBy = now, now.Add(c.PayWithin)
	}
}

func (r *round) insertOrders(tx *gorm.DB, orders []candidate) ([]candidate, error) {
	insert := ordersStatement(r.db.dialect, orders)
	result := tx.Exec(insert.text(), insert.args...)
	if result.Error != nil {
		return nil, result.Error
	}
	if int(result.RowsAffected) == len(orders) {
		return orders, nil
	}
	return r.inserted(tx, orders)
}

// ordersStatement inserts orders; those that a unique index refuses are left out.
func ordersStatement(d dialect, orders []candidate) *statement {
	s := newStatement("INSERT INTO voucher_order"+
		" (id, voucher_id, user_id, slot, request_id, status, version, price_cents, created_at, pay_by) VALUES ", 160*len(orders))
	created := d.time(orders[0].Order.CreatedAt) // of all of them
	var payBy time.Time                          // of most of them
	var by string
	for i := range orders {
		o := &orders[i].Order
		if !o.PayBy.Equal(payBy) {
			payBy, by = o.PayBy, d.time(o.PayBy)
		}
		s.row().int(int64(o.ID)).int(int64(o.VoucherID)).int(int64(o.UserID)).int(int64(slotOf(&orders[i]))).str(o.RequestID).
			int(int64(o.Status)).int(int64(o.Version)).int(o.PriceCents).raw(created).raw(by).end()
	}
	s.sql = append(s.sql, d.orSkip("voucher_order", "id")...)
	return s
}

// inserted looks up which of the orders are there now. The id alone does not tell: should a generator ever hand one out
// twice, the row is somebody else's.
func (r *round) inserted(tx *gorm.DB, orders []candidate) ([]candidate, error) {
	var rows []orderRow
	err := tx.Select("id", "voucher_id", "user_id", "request_id").Where("id IN ?", orderIDs(orders)).Find(&rows).Error
	if err != nil {
		return nil, err
	}
	found := make(map[int64]*orderRow, len(rows))
	for i := range rows {
		found[rows[i].ID] = &rows[i]
	}
	var own []candidate
	for _, c := range orders {
		row := found[int64(c.Order.ID)]
		if row == nil {
			continue
		}
		if row.VoucherID != int64(c.Order.VoucherID) || row.UserID != int64(c.Order.UserID) || row.RequestID != c.Order.RequestID {
			return nil, errors.New("order id " + c.Order.ID.String() + " was handed out twice")
		}
		own = append(own, c)
	}
	return own, nil
}

func createdEvents(placed []candidate, now time.Time) []event {
	events := make([]event, len(placed))
	for i, c := range placed {
		events[i] = event{id: c.EventID, trace: c.TraceParent, OrderEvent: service.NewOrderEvent(service.OrderCreated, &c.Order, now)}
	}
	return events
}
