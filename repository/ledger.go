package repository

import (
	"context"

	"seckill/service"
	"seckill/service/idgen"
)

// LedgerOrder is what holds an order against what its buyer was told.
type LedgerOrder struct {
	ID        idgen.ID
	VoucherID idgen.ID
	UserID    service.UserID
	RequestID string
	Status    service.Status
}

// EachOrder hands every order of the vouchers to each, in no order, and ends at its first error. Rows are read while
// each is at work, so it must not use the database.
func (db *DB) EachOrder(ctx context.Context, vouchers []idgen.ID, each func(LedgerOrder) error) (err error) {
	if len(vouchers) == 0 {
		return nil
	}
	rows, err := db.session(ctx).Raw(
		"SELECT id, voucher_id, user_id, request_id, status FROM voucher_order WHERE voucher_id IN ?", vouchers).Rows()
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // Err has told what can go wrong
	for rows.Next() {
		var o LedgerOrder
		if err := rows.Scan(&o.ID, &o.VoucherID, &o.UserID, &o.RequestID, &o.Status); err != nil {
			return err
		}
		if err := each(o); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Unsent counts the events that the broker has not confirmed yet.
func (db *DB) Unsent(ctx context.Context) (n int64, err error) {
	err = db.session(ctx).Raw("SELECT COUNT(*) FROM outbox_event WHERE status IN ?", []int{outboxPending, outboxFailed}).Scan(&n).Error
	return n, err
}
