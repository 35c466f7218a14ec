package repository

import (
	"context"
	"testing"
	"time"

	"seckill/repository/repotest/dbtest"
	"seckill/service"
)

// After a purge the audit still passes, and still finds an event that is missing for another reason.
func TestAudit_AfterPurge(t *testing.T) {
	t.Parallel()
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		for _, archive := range []bool{false, true} {
			db := openRaw(t, target, PoolOptions{})
			if _, err := db.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			voucher := onSale(t, db, 10, 1)
			first := service.UserID(nextID()) * 10
			old := place(t, db, placement(voucher, first, ""), placement(voucher, first+1, ""))
			before := time.Now().Add(-time.Minute)
			must(t, db, "UPDATE outbox_event SET status = 1, next_retry_time = ?, created_at = ?", time.Now().Add(-time.Hour), before)
			must(t, db, "UPDATE voucher_order SET created_at = ?", before) // so that these orders are older than the one below
			if n, err := NewOutbox(db).Purge(t.Context(), time.Minute, 100, archive); err != nil || n < 2 {
				t.Fatalf("purged %d (%v)", n, err)
			}
			if _, err := NewOrders(db).Cancel(t.Context(), old[0].Order.ID, first, nextID()); err != nil {
				t.Fatal(err)
			}
			young := place(t, db, placement(voucher, first+2, ""))[0]
			wantBroken(t, db, "")
			must(t, db, "DELETE FROM outbox_event WHERE biz_id = ?", young.Order.ID)
			wantBroken(t, db, "event-missing")
			must(t, db, "DELETE FROM voucher_order WHERE id = ?", young.Order.ID)
			must(t, db, "UPDATE voucher_stock SET stock = stock + 1, placed = placed - 1 WHERE voucher_id = ?", voucher)
			wantBroken(t, db, "")
			must(t, db, "DELETE FROM outbox_event WHERE biz_id = ?", old[0].Order.ID) // an old order's, which only the count misses
			wantBroken(t, db, "event-purged")
			for _, table := range []string{"outbox_purged", "outbox_archive", "outbox_event", "voucher_order"} {
				must(t, db, "DELETE FROM "+table)
			}
			must(t, db, "UPDATE voucher_stock SET stock = total, placed = 0")
		}
	})
}

func must(t *testing.T, db *DB, query string, args ...any) {
	t.Helper()
	if err := db.gorm.Exec(query, args...).Error; err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

// wantBroken fails the test unless this check is the first that is broken; "" stands for none.
func wantBroken(t *testing.T, db *DB, broken string) {
	t.Helper()
	audit, err := db.Audit(context.Background(), AuditOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range audit.Findings {
		if !f.OK {
			if f.ID != broken {
				t.Fatalf("%q is broken (%v), want %q", f.ID, f.Rows, broken)
			}
			return
		}
	}
	if broken != "" {
		t.Fatalf("the audit does not find that %q is broken", broken)
	}
}
