//go:build !seckill_guard_off

package repository

import (
	"log/slog"
	"time"

	"gorm.io/gorm"

	"seckill/service/idgen"
)

// takeUnits is the guard: the units go only if they are there and the sale is on. now is when the orders were placed;
// the end is also held against the time at which the row is reached, so that an instance that was paused in between
// sells nothing afterwards.
func takeUnits(tx *gorm.DB, d dialect, voucherID idgen.ID, n int, now time.Time) (taken bool, err error) {
	sql, args := unitsStatement(d, voucherID, n, now)
	result := tx.Exec(sql, args...)
	return result.RowsAffected == 1, result.Error
}

// unitsStatement takes n units if the guard allows it; one changed row says that it did.
func unitsStatement(d dialect, voucherID idgen.ID, n int, now time.Time) (sql string, args []any) {
	if n == 1 {
		return "UPDATE voucher_stock SET stock = stock - 1, placed = placed + 1" +
			" WHERE voucher_id = ? AND stock > 0 AND starts_at <= ? AND ends_at > " + d.nowLate, []any{int64(voucherID), now}
	}
	return "UPDATE voucher_stock SET stock = stock - ?, placed = placed + ?" +
		" WHERE voucher_id = ? AND stock >= ? AND starts_at <= ? AND ends_at > " + d.nowLate, []any{n, n, int64(voucherID), n, now}
}

// oneStatement: the guard is a statement, and can be sent together with others.
const oneStatement = true

// slotOf is where an order goes among its user's live orders; a unique index has room for one there.
func slotOf(c *candidate) int { return c.slot }

// checkGuard has nothing to say: the guard is there.
func checkGuard(*slog.Logger) error { return nil }
