package repository

import (
	"context"
	"fmt"
	"time"
)

// Books are the units of all vouchers that are on sale or were so of late. It is the heart of the audit, cheap enough to
// be looked at all the time.
type Books struct {
	Vouchers int64
	Total    int64 // units ever on sale
	Stock    int64 // units left
	Live     int64 // orders that hold a unit

	Oversold    int64 // live orders beyond their voucher's total: more sold than there is
	Unaccounted int64 // by how much total and stock + live orders differ, over all vouchers
}

// Books adds up the vouchers whose sale ends in the future or ended less than recent ago. It is one statement, and so
// sees one state of the database; of orders it reads the index of slots alone.
func (db *DB) Books(ctx context.Context, recent time.Duration) (b Books, err error) {
	err = db.patient().session(ctx).Raw(`
SELECT COUNT(*) AS vouchers, COALESCE(SUM(total), 0) AS total, COALESCE(SUM(stock), 0) AS stock, COALESCE(SUM(live), 0) AS live,
       COALESCE(SUM(CASE WHEN live > total THEN live - total ELSE 0 END), 0) AS oversold,
       COALESCE(SUM(ABS(total - stock - live)), 0) AS unaccounted
  FROM (SELECT s.total, s.stock,
               (SELECT COUNT(o.slot) FROM voucher_order o WHERE o.voucher_id = s.voucher_id AND o.slot IS NOT NULL) AS live
          FROM voucher_stock s WHERE s.ends_at > ` + db.dialect.nowPlus(-recent) + `) AS sale`).Scan(&b).Error
	if err != nil {
		return b, fmt.Errorf("books: %w", err)
	}
	return b, nil
}
