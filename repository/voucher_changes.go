package repository

import (
	"context"
	"fmt"
	"time"

	"gorm.io/gorm"

	"seckill/service"
	"seckill/service/idgen"
)

// Create implements service.VoucherStore. The same id again changes nothing, so it is safe to repeat.
func (s *Vouchers) Create(ctx context.Context, id idgen.ID, v service.NewVoucher) error {
	d := s.db.dialect
	return s.db.inTxUntilKnown(ctx, func(tx *gorm.DB) error {
		err := tx.Exec("INSERT INTO voucher (id, title, price_cents, pay_seconds, created_at, updated_at)"+
			" VALUES (?, ?, ?, ?, "+d.now+", "+d.now+")"+d.onConflictDoNothing("voucher", "id"),
			int64(id), v.Title, v.PriceCents, int64(v.PayWithin/time.Second)).Error
		if err != nil {
			return err
		}
		return tx.Exec("INSERT INTO voucher_stock (voucher_id, total, stock, placed, user_limit, starts_at, ends_at)"+
			" VALUES (?, ?, ?, 0, ?, ?, ?)"+d.onConflictDoNothing("voucher_stock", "voucher_id"),
			int64(id), v.Stock, v.Stock, v.UserLimit, millis(v.StartsAt), millis(v.EndsAt)).Error
	})
}

// lockTerms reads and locks the stock row, for a change by an admin.
func lockTerms(tx *gorm.DB, d dialect, id idgen.ID) (service.Terms, time.Time, error) {
	var row stockRow
	err := tx.Raw("SELECT s.*, "+d.nowAtRow+" AS read_at FROM voucher_stock s WHERE voucher_id = ?"+d.forUpdate, int64(id)).
		Take(&row).Error
	return row.terms(), row.ReadAt.Time, err
}

// Change implements service.VoucherStore.
func (s *Vouchers) Change(ctx context.Context, id idgen.ID, c service.VoucherChange) error {
	return s.db.inTxUntilKnown(ctx, func(tx *gorm.DB) error {
		terms, now, err := lockTerms(tx, s.db.dialect, id)
		if err != nil {
			return err
		}
		changed, err := c.Apply(terms, now)
		if err != nil {
			return err
		}
		err = tx.Exec("UPDATE voucher_stock SET user_limit = ?, starts_at = ?, ends_at = ? WHERE voucher_id = ?",
			changed.UserLimit, millis(changed.StartsAt), millis(changed.EndsAt), int64(id)).Error
		if err != nil {
			return err
		}
		return s.describe(tx, id, c)
	})
}

// describe changes title and price, which the guard does not check.
func (s *Vouchers) describe(tx *gorm.DB, id idgen.ID, c service.VoucherChange) error {
	set, args := "updated_at = "+s.db.dialect.now, []any{}
	if c.Title != nil {
		set, args = set+", title = ?", append(args, *c.Title)
	}
	if c.PriceCents != nil {
		set, args = set+", price_cents = ?", append(args, *c.PriceCents)
	}
	return tx.Exec("UPDATE voucher SET "+set+" WHERE id = ?", append(args, int64(id))...).Error
}

// AddStock implements service.VoucherStore.
func (s *Vouchers) AddStock(ctx context.Context, id idgen.ID, units int64, requestID string) error {
	d := s.db.dialect
	return s.db.inTxUntilKnown(ctx, func(tx *gorm.DB) error {
		terms, _, err := lockTerms(tx, d, id)
		if err != nil {
			return err
		}
		added := tx.Exec("INSERT INTO voucher_restock (voucher_id, request_id, units, created_at) VALUES (?, ?, ?, "+d.now+")"+
			d.onConflictDoNothing("voucher_restock", "voucher_id"), int64(id), requestID, units)
		switch {
		case added.Error != nil:
			return added.Error
		case added.RowsAffected == 0:
			return sameRestock(tx, id, units, requestID)
		}
		if terms.Total+units > service.MaxStock {
			return service.Invalid("units", "would make more than %d in all", service.MaxStock)
		}
		return exactly(1, tx.Exec("UPDATE voucher_stock SET total = total + ?, stock = stock + ? WHERE voucher_id = ?", units, units, int64(id)))
	})
}

// sameRestock refuses a request id that was used for another number of units.
func sameRestock(tx *gorm.DB, id idgen.ID, units int64, requestID string) error {
	var before int64
	err := tx.Raw("SELECT units FROM voucher_restock WHERE voucher_id = ? AND request_id = ?", int64(id), requestID).Row().Scan(&before)
	if err == nil && before != units {
		return &service.Error{
			Code: service.CodeKeyReused, Field: "units",
			Message: fmt.Sprintf("this Idempotency-Key has added %d units; take a new one to add others", before),
		}
	}
	return err
}

// End implements service.VoucherStore. It takes the time after the row is locked: every order was placed before it, or
// in the same millisecond.
func (s *Vouchers) End(ctx context.Context, id idgen.ID) error {
	return s.db.inTxUntilKnown(ctx, func(tx *gorm.DB) error {
		terms, now, err := lockTerms(tx, s.db.dialect, id)
		if err != nil || !now.Before(terms.EndsAt) {
			return err
		}
		end := now.Add(time.Millisecond) // the window excludes its end, and there may be an order of this millisecond
		// If the sale has not begun, the window becomes empty.
		return tx.Exec("UPDATE voucher_stock SET ends_at = ?, starts_at = CASE WHEN starts_at > ? THEN ? ELSE starts_at END"+
			" WHERE voucher_id = ?", end, end, end, int64(id)).Error
	})
}
