package repository

import (
	"context"
	"errors"
	"time"

	"gorm.io/gorm"

	"seckill/service"
	"seckill/service/idgen"
)

// Vouchers implements service.VoucherStore.
type Vouchers struct{ db *DB }

var _ service.VoucherStore = (*Vouchers)(nil)

// NewVouchers stores vouchers in db; the caller closes db.
func NewVouchers(db *DB) *Vouchers { return &Vouchers{db: db} }

// stockRow is a row of voucher_stock.
type stockRow struct {
	VoucherID int64
	Total     int64
	Stock     int64
	Placed    int64
	UserLimit int
	StartsAt  time.Time
	EndsAt    time.Time
	ReadAt    dbTime // the database's time; not a column
}

func (r *stockRow) terms() service.Terms {
	return service.Terms{
		Total: r.Total, Stock: r.Stock, Placed: r.Placed, UserLimit: r.UserLimit,
		StartsAt: r.StartsAt.UTC(), EndsAt: r.EndsAt.UTC(),
	}
}

// readTerms reads the stock row without a lock, and the database's time.
func readTerms(tx *gorm.DB, d dialect, id idgen.ID) (service.Terms, time.Time, error) {
	var row stockRow
	err := tx.Raw("SELECT s.*, "+d.now+" AS read_at FROM voucher_stock s WHERE voucher_id = ?", int64(id)).Take(&row).Error
	if errors.Is(err, gorm.ErrRecordNotFound) {
		err = service.ErrNotFound
	}
	return row.terms(), row.ReadAt.Time, err
}

// Terms implements service.VoucherStore.
func (s *Vouchers) Terms(ctx context.Context, id idgen.ID) (terms service.Terms, now time.Time, err error) {
	err = s.db.read(ctx, func(tx *gorm.DB) error {
		terms, now, err = readTerms(tx, s.db.dialect, id)
		return err
	})
	return terms, now, err
}

// voucherRow is a row of voucher joined with its stock.
type voucherRow struct {
	ID         int64
	Title      string
	PriceCents int64
	PaySeconds int64
	Stock      stockRow `gorm:"embedded"`
}

func (r *voucherRow) voucher() service.Voucher {
	return service.Voucher{
		ID: idgen.ID(r.ID), Title: r.Title, PriceCents: r.PriceCents,
		PayWithin: time.Duration(r.PaySeconds) * time.Second,
		Terms:     r.Stock.terms(), ServerTime: r.Stock.ReadAt.Time,
	}
}

func (s *Vouchers) list(ctx context.Context, where string, args ...any) ([]service.Voucher, error) {
	var rows []voucherRow
	err := s.db.read(ctx, func(tx *gorm.DB) error {
		return tx.Raw("SELECT v.id, v.title, v.price_cents, v.pay_seconds, s.*, "+s.db.dialect.now+" AS read_at"+
			" FROM voucher v JOIN voucher_stock s ON s.voucher_id = v.id WHERE "+where, args...).Scan(&rows).Error
	})
	vouchers := make([]service.Voucher, len(rows))
	for i := range rows {
		vouchers[i] = rows[i].voucher()
	}
	return vouchers, err
}

// Voucher implements service.VoucherStore.
func (s *Vouchers) Voucher(ctx context.Context, id idgen.ID) (service.Voucher, error) {
	found, err := s.list(ctx, "v.id = ?", int64(id))
	switch {
	case err != nil:
		return service.Voucher{}, err
	case len(found) == 0:
		return service.Voucher{}, service.ErrNotFound
	}
	return found[0], nil
}

// Vouchers implements service.VoucherStore.
func (s *Vouchers) Vouchers(ctx context.Context, before idgen.ID, limit int) ([]service.Voucher, error) {
	if before > 0 {
		return s.list(ctx, "v.id < ? ORDER BY v.id DESC LIMIT ?", int64(before), limit)
	}
	return s.list(ctx, "1 = 1 ORDER BY v.id DESC LIMIT ?", limit)
}
