//go:build seckill_guard_off

package repository

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"os"
	"time"

	"gorm.io/gorm"

	"seckill/service"
	"seckill/service/idgen"
)

// takeUnits reads, checks, then writes, as the textbook mistake does. Two instances that do so at the same moment both
// sell the same units. The failover drill builds this shop as its negative control, and must find the oversold units.
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

// guardIsOneStatement: takeUnits above is two, with a decision of the program in between.
const guardIsOneStatement = false

// takeUnitsSQL is never called here, see guardIsOneStatement.
func takeUnitsSQL(dialect, idgen.ID, int, time.Time) (sql string, args []any) { return "", nil }

// slotOf gives each order another slot, so that the unique index refuses none.
func slotOf(*service.Placement) int { return int(rand.Int32()) } //nolint:gosec // this shop is wrong on purpose

// checkGuard refuses to start unless the environment asks for a shop without its guard.
func checkGuard(log *slog.Logger) error {
	const variable, word = "SECKILL_GUARD_OFF", "oversell"
	if os.Getenv(variable) != word {
		return errors.New("this program was built with the tag seckill_guard_off: it oversells, as a drill's negative control; build it without, or set " +
			variable + "=" + word)
	}
	log.Error("THIS SHOP WAS BUILT WITHOUT ITS GUARD (tag seckill_guard_off): IT OVERSELLS, ON PURPOSE. FOR DRILLS ONLY")
	return nil
}
