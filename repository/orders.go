package repository

import (
	"context"

	"gorm.io/gorm"

	"seckill/service"
	"seckill/service/idgen"
)

// Orders is the service.OrderStore over a database.
type Orders struct {
	db     *DB
	cached termsCache
}

var _ service.OrderStore = (*Orders)(nil)

// NewOrders keeps orders in db, which stays the caller's to close.
func NewOrders(db *DB) *Orders { return &Orders{db: db} }

// Order implements service.OrderStore.
func (s *Orders) Order(ctx context.Context, id idgen.ID) (service.Order, error) {
	var row orderRow
	err := s.db.read(ctx, func(tx *gorm.DB) error { return tx.Where("id = ?", int64(id)).Take(&row).Error })
	return row.order(), err
}

// Orders implements service.OrderStore. The index (user_id, request_id) finds a user's orders, of which there are few;
// an index of its own would cost every placed order.
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

// Buyers implements service.OrderStore. The index (voucher_id, user_id, slot) covers it. The counter is read first: an
// order that commits in between is in the list without being counted, never the other way round.
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
