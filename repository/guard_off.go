//go:build seckill_guard_off

package repository

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"time"

	"gorm.io/gorm"

	"seckill/service/idgen"
)

// takeUnits is what stands in the textbook: read, check, write. Two instances that do so at the same moment both sell
// the same units. The failover drill builds a shop like this as its negative control, and has to find it out.
func takeUnits(tx *gorm.DB, _ dialect, voucherID idgen.ID, n int, _ time.Time) (taken bool, err error) {
	var stock int
	if err := tx.Raw("SELECT stock FROM voucher_stock WHERE voucher_id = ?", int64(voucherID)).Scan(&stock).Error; err != nil {
		return false, err
	}
	if stock < n {
		return false, nil
	}
	result := tx.Exec("UPDATE voucher_stock SET stock = ?, placed = placed + ? WHERE voucher_id = ?", stock-n, n, int64(voucherID))
	return result.RowsAffected == 1, result.Error
}

// oneStatement: what is above is two, with a decision of the program in between.
const oneStatement = false

// unitsStatement is never called here, see oneStatement.
func unitsStatement(dialect, idgen.ID, int, time.Time) (sql string, args []any) { return "", nil }

// slotOf makes each order's slot another, so that the unique index refuses nobody.
func slotOf(*candidate) int { return int(rand.Int32()) } //nolint:gosec // nothing relies on it, that is the point

// checkGuard refuses to work by accident: who wants this shop has to say so.
func checkGuard(log *slog.Logger) error {
	const variable, word = "SECKILL_GUARD_OFF", "oversell"
	if os.Getenv(variable) != word {
		return errors.New("this program was built with the tag seckill_guard_off: it oversells, as a drill's negative control; build it without, or set " +
			variable + "=" + word)
	}
	log.Error("THIS SHOP WAS BUILT WITHOUT ITS GUARD (tag seckill_guard_off): IT OVERSELLS, ON PURPOSE. FOR DRILLS ONLY")
	return nil
}
