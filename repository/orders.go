package repository

import (
	"context"
	"time"

	"gorm.io/gorm"

	"seckill/service"
	"seckill/service/idgen"
)

// Orders implements service.OrderStore.
type Orders struct{ db *DB }

var _ service.OrderStore = (*Orders)(nil)

// NewOrders stores orders in db; the caller closes db.
func NewOrders(db *DB) *Orders { return &Orders{db: db} }

// Order implements service.OrderStore.
func (s *Orders) Order(ctx context.Context, id idgen.ID) (service.Order, error) {
	var row orderRow
	err := s.db.read(ctx, func(tx *gorm.DB) error { return tx.Where("id = ?", int64(id)).Take(&row).Error })
	return row.order(), err
}

// Orders implements service.OrderStore. The index (user_id, request_id) finds a user's orders, which are few; another
// index would slow down every placed order.
func (s *Orders) Orders(ctx context.Context, user service.UserID, before idgen.ID, limit int) ([]service.Order, error) {
	var rows []orderRow
	err := s.db.read(ctx, func(tx *gorm.DB) error {
		q := tx.Where("user_id = ?", int64(user))
		if before > 0 {
			q = q.Where("id < ?", int64(before))
		}
		return q.Order("id DESC").Limit(limit).Find(&rows).Error
	})
	orders := make([]service.Order, len(rows))
	for i := range rows {
		orders[i] = rows[i].order()
	}
	return orders, err
}

// Buyers implements service.OrderStore. The index (voucher_id, user_id, slot) covers its query. The counter is read first:
// an order that commits between the two reads is in the list but not counted, never counted but not in the list.
func (s *Orders) Buyers(ctx context.Context, voucherID idgen.ID) (users []service.UserID, placed int64, err error) {
	err = s.db.read(ctx, func(tx *gorm.DB) error {
		users = users[:0]
		row := tx.Raw("SELECT placed FROM voucher_stock WHERE voucher_id = ?", int64(voucherID)).Row()
		if err := row.Scan(&placed); err != nil {
			return err
		}
		return tx.Raw("SELECT DISTINCT user_id FROM voucher_order WHERE voucher_id = ? ORDER BY user_id", int64(voucherID)).
			Scan(&users).Error
	})
	return users, placed, err
}

// orderRow is a row of voucher_order.
type orderRow struct {
	ID          int64
	VoucherID   int64
	UserID      int64
	Slot        *int
	RequestID   string
	Status      int8
	CloseReason *int8
	Version     int
	PriceCents  int64
	CreatedAt   time.Time
	PayBy       *time.Time
	PaidAt      *time.Time
	ClosedAt    *time.Time
}

// TableName is gorm's hook.
func (orderRow) TableName() string { return "voucher_order" }

func (r *orderRow) order() service.Order {
	o := service.Order{
		ID: idgen.ID(r.ID), VoucherID: idgen.ID(r.VoucherID), UserID: service.UserID(r.UserID),
		RequestID: r.RequestID, Status: service.Status(r.Status), Version: r.Version, PriceCents: r.PriceCents,
		CreatedAt: r.CreatedAt.UTC(), PayBy: orZero(r.PayBy), PaidAt: orZero(r.PaidAt), ClosedAt: orZero(r.ClosedAt),
	}
	if r.CloseReason != nil {
		o.CloseReason = service.CloseReason(*r.CloseReason)
	}
	return o
}
