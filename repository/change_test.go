package repository

import (
	"context"
	"testing"
	"time"

	"seckill/repository/repotest/dbtest"
	"seckill/repository/repotest/wait"
	"seckill/service"
)

// A change whose context ends before its first statement was sent did not happen, and its error says so. If the context
// ends while a statement waits, the outcome is unknown.
func TestChange_CutOff(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		db, narrow := openDB(t, target), openRaw(t, target, PoolOptions{MaxOpen: 1})
		order := placed(t, db, onSale(t, db, 9, 1), 1)
		for _, step := range []string{"pay", "cancel"} {
			cutOff := func(on *DB, when func() bool) error {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				answer := make(chan error, 1)
				go func() {
					_, err := change(ctx, on, order, step)
					answer <- err
				}()
				wait.Within(t, time.Minute, "the change has come to the fault", when)
				cancel()
				return <-answer
			}
			only, waits := narrow.gorm.Begin(), narrow.sql.Stats().WaitCount
			err := cutOff(narrow, func() bool { return narrow.sql.Stats().WaitCount > waits })
			only.Rollback()
			if service.CodeOf(err) != service.CodeUnavailable {
				t.Errorf("%s, while no connection was free: %v", step, err)
			}

			holder := db.gorm.Begin()
			if err := holder.Exec("SELECT id FROM voucher_order WHERE id = ? FOR UPDATE", int64(order.ID)).Error; err != nil {
				t.Fatal(err)
			}
			err = cutOff(db, func() bool { return changesUnderWay(t, db) })
			holder.Rollback()
			if service.CodeOf(err) != service.CodeUnknown {
				t.Errorf("%s, while a statement waited: %v", step, err)
			}
			// The server may take a moment to notice the closed connection.
			wait.Within(t, time.Minute, "no change is under way", func() bool { return !changesUnderWay(t, db) })
			if now, err := NewOrders(db).Order(t.Context(), order.ID); err != nil || now.Status != service.Pending {
				t.Errorf("%s: the order is %s (%v)", step, now.Status, err)
			}
		}
		if _, err := change(t.Context(), db, order, "pay"); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

// changesUnderWay reports whether the server runs a statement that locks an order.
func changesUnderWay(t *testing.T, db *DB) bool {
	var n int
	const query = "SELECT COUNT(*) FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE CONCAT('%voucher_', 'order o WHERE%')"
	if err := db.session(t.Context()).Raw(query).Scan(&n).Error; err != nil {
		t.Error(err)
		return false
	}
	return n > 0
}
