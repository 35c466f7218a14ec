package repository

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gorm.io/gorm"

	"seckill/repository/repotest/dbtest"
	"seckill/service"
	"seckill/service/idgen"
)

func effects(t *testing.T, db *DB, order idgen.ID) (n int) {
	t.Helper()
	if err := db.session(t.Context()).Raw("SELECT COUNT(*) FROM points_entry WHERE order_id = ?", order).Scan(&n).Error; err != nil {
		t.Fatal(err)
	}
	return n
}

// A hundred deliveries of one event wait for the record of a first one, which is rolled back. Then all of them insert the
// record at the same moment, and InnoDB detects deadlocks. If the victim of a deadlock were treated as a duplicate, it
// would be acknowledged, and the event would be lost when the survivor fails. So the first three survivors fail.
func TestConsumed_HundredDeliveriesHaveOneEffect(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		db := openRaw(t, target, PoolOptions{MaxOpen: 110})
		if _, err := db.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		const deliveries, deaths = 100, 3
		first := db.session(t.Context()).Begin()
		defer first.Rollback()
		if err := first.Exec("INSERT INTO consume_record VALUES (?, 1, "+db.dialect.now+")", service.PointsConsumer).Error; err != nil {
			t.Fatal(err)
		}
		c := NewConsumerStore(db)
		var calls, booked atomic.Int32
		died := errors.New("died in the middle of its transaction")
		effect := func(tx *gorm.DB) error {
			if calls.Add(1) <= deaths {
				return died
			}
			return tx.Exec("INSERT INTO points_entry (order_id, user_id, points, created_at) VALUES (5, 6, 7, " + db.dialect.now + ")").Error
		}
		var running sync.WaitGroup
		for range deliveries {
			running.Go(func() {
				took, err := c.once(t.Context(), service.PointsConsumer, 1, effect)
				if err != nil && !errors.Is(err, died) {
					t.Error(err)
				}
				if took {
					booked.Add(1)
				}
			})
		}
		waitForWaiters(t, db, deliveries/2)
		if err := first.Rollback().Error; err != nil {
			t.Fatal(err)
		}
		running.Wait()
		if n := effects(t, db, 5); n != 1 || booked.Load() != 1 {
			t.Errorf("%d effects, of which %d deliveries say that they are theirs; want one and one", n, booked.Load())
		}
	})
}

// waitForWaiters returns when that many transactions wait for a record.
func waitForWaiters(t *testing.T, db *DB, want int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second) // less than lockWait
	defer cancel()
	for n := 0; n < want; {
		time.Sleep(150 * time.Millisecond) // InnoDB caches this table for 100 ms
		err := db.session(ctx).Raw(`SELECT COUNT(*) FROM information_schema.innodb_trx t
			JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id
			WHERE t.trx_state = 'LOCK WAIT' AND p.db = DATABASE()`).Scan(&n).Error
		if err != nil {
			t.Fatalf("%d of %d deliveries wait for the record: %v", n, want, err)
		}
	}
}

func TestConsumed_BookPoints(t *testing.T) {
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db, _ := openOutbox(t, target)
		c := NewConsumerStore(db)
		for _, tt := range []struct {
			event, order idgen.ID
			want         bool
		}{{1, 10, true}, {1, 10, false}, {2, 11, true}, {1, 10, false}} {
			booked, err := c.BookPoints(t.Context(), tt.event, service.PointsEntry{OrderID: tt.order, UserID: 3, Points: 4})
			if err != nil || booked != tt.want {
				t.Errorf("event %d: booked is %v (%v), want %v", tt.event, booked, err, tt.want)
			}
		}
		for _, order := range []idgen.ID{10, 11} {
			if n := effects(t, db, order); n != 1 {
				t.Errorf("order %d has %d effects", order, n)
			}
		}
	})
}
