package repository

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gorm.io/gorm"

	"seckill/repository/repotest/dbtest"
	"seckill/service"
	"seckill/service/idgen"
)

// defects plants one defect for each check. In the statements, {pending} and the like stand for the id of an order in that
// state, {now} for the database's time and {id} for a new id.
var defects = []struct {
	check string // its id
	plant []string
}{
	{"stock-negative", []string{"UPDATE voucher_stock SET total = total - stock - 1, stock = -1 WHERE voucher_id = {voucher}"}},
	{"stock-balance", []string{"UPDATE voucher_stock SET stock = stock - 1 WHERE voucher_id = {voucher}"}},
	{"stock-balance", []string{"UPDATE voucher_stock SET stock = stock + 1 WHERE voucher_id = {voucher}"}},
	{"stock-balance", []string{"UPDATE voucher_stock SET total = total + 1 WHERE voucher_id = {empty}"}},
	{"placed-count", []string{"UPDATE voucher_stock SET placed = placed + 1 WHERE voucher_id = {voucher}"}},
	{"voucher-missing", []string{"UPDATE voucher_order SET voucher_id = {id} WHERE id = {pending}",
		"UPDATE voucher_stock SET stock = stock + 1, placed = placed - 1 WHERE voucher_id = {voucher}"}},
	{"user-limit", []string{"UPDATE voucher_stock SET user_limit = 1 WHERE voucher_id = {voucher}"}},
	{"slot-conflict", []string{"UPDATE voucher_order SET slot = 0 WHERE user_id = 5"}},
	{"slot-conflict", []string{"UPDATE voucher_order SET slot = 0 WHERE id = {cancelled}",
		"UPDATE voucher_stock SET stock = stock - 1 WHERE voucher_id = {voucher}"}},
	{"slot-missing", []string{"UPDATE voucher_order SET slot = NULL WHERE id = {pending}",
		"UPDATE voucher_stock SET stock = stock + 1 WHERE voucher_id = {voucher}"}},
	{"request-duplicate", []string{"UPDATE voucher_order SET request_id = 'same' WHERE user_id = 5"}},
	{"id-duplicate", []string{"UPDATE outbox_event SET event_id = {paid} WHERE biz_id = {pending}"}},
	{"order-state", []string{"UPDATE voucher_order SET paid_at = {now} WHERE id = {pending}"}},
	{"order-state", []string{"UPDATE voucher_order SET closed_at = {now}, close_reason = 1 WHERE id = {paid}"}},
	{"order-state", []string{"UPDATE voucher_order SET pay_by = {now} WHERE id = {expired}"}},
	{"order-state", []string{"UPDATE voucher_order SET pay_by = NULL WHERE id = {pending}"}},
	{"payment-count", []string{"DELETE FROM payment WHERE order_id = {paid}"}},
	{"payment-count", []string{
		"INSERT INTO payment (payment_id, order_id, amount_cents, refund_due, created_at) VALUES ('x', {pending}, 1, 0, {now})"}},
	{"payment-orphan", []string{
		"INSERT INTO payment (payment_id, order_id, amount_cents, refund_due, created_at) VALUES ('x', {id}, 1, 0, {now})"}},
	{"event-missing", []string{"DELETE FROM outbox_event WHERE biz_id = {pending}"}},
	{"event-missing", []string{"DELETE FROM outbox_event WHERE biz_id = {cancelled} AND biz_type = 'ORDER_REFUND_DUE'"}},
	{"event-missing", []string{"UPDATE outbox_event SET biz_type = 'ORDER_EXPIRED' WHERE biz_type = 'ORDER_CANCELLED'"}},
	{"event-missing", []string{"UPDATE voucher_order SET version = version + 1 WHERE id = {expired}"}},
	{"event-missing", []string{"UPDATE outbox_event SET version = 1 WHERE biz_id = {paid}"}},
	{"event-missing", []string{"DELETE FROM payment WHERE refund_due = 1"}},
	{"event-surplus", []string{
		"INSERT INTO outbox_purged (biz_type, events, latest_created_at) VALUES ('ORDER_CREATED', 1, {now})",
		"DELETE FROM outbox_event WHERE biz_id = {pending}", "UPDATE outbox_event SET version = 1 WHERE biz_id = {paid}"}},
	{"event-purged", []string{
		"INSERT INTO outbox_purged (biz_type, events, latest_created_at) VALUES ('ORDER_CREATED', 2, {now})",
		"DELETE FROM outbox_event WHERE biz_id = {pending}"}},
	{"event-orphan", []string{"INSERT INTO outbox_event (event_id, biz_type, biz_id, version, payload, status," +
		" next_retry_time, created_at, updated_at) VALUES ({id}, 'ORDER_CREATED', {id}, 1, '{}', 1, {now}, {now}, {now})"}},
	{"effect-duplicate", []string{"INSERT INTO points_entry (order_id, user_id, points, created_at) VALUES ({paid}, 2, 10, {now})"}},
	{"effect-orphan", []string{"INSERT INTO points_entry (order_id, user_id, points, created_at) VALUES ({pending}, 1, 10, {now})"}},
	{"event-unsent", []string{"UPDATE outbox_event SET status = 0 WHERE biz_id = {expired}"}},
	{"event-unsent", []string{"UPDATE outbox_event SET status = 2 WHERE biz_id = {expired}"}},
	{"effect-missing", []string{"DELETE FROM points_entry"}},
	{"sale-window", []string{"UPDATE voucher_stock SET starts_at = ends_at WHERE voucher_id = {voucher}"}},
	{"sale-window", []string{"UPDATE voucher_stock SET ends_at = starts_at WHERE voucher_id = {voucher}"}},
}

// The audit finds each defect, and nothing else.
func TestAudit_FindsEachDefect(t *testing.T) {
	t.Parallel()
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db := openRaw(t, target, PoolOptions{})
		if _, err := db.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		dropConstraints(t, db)
		values := soundShop(t, db)
		keep(t, db)
		tried := map[string]bool{}
		for _, defect := range defects {
			tried[defect.check] = true
			restore(t, db)
			for _, statement := range defect.plant {
				result := db.gorm.Exec(values.Replace(statement))
				if result.Error != nil || result.RowsAffected == 0 {
					t.Fatalf("%s: %v, %d rows", statement, result.Error, result.RowsAffected)
				}
			}
			if broken := brokenChecks(t, db); !slices.Equal(broken, []string{defect.check}) {
				t.Errorf("%s:\n  found %q, want %q", defect.plant, broken, defect.check)
			}
		}
		restore(t, db)
		if broken := brokenChecks(t, db); len(broken) > 0 {
			t.Errorf("a sound shop breaks %q", broken)
		}
		for _, c := range auditChecks {
			if !tried[c.id] {
				t.Errorf("nothing is planted for %q", c.id)
			}
		}
	})
}

// brokenChecks lists the ids of the checks that fail, all of them included.
func brokenChecks(t *testing.T, db *DB) (names []string) {
	t.Helper()
	audit, err := db.Audit(t.Context(), AuditOptions{Settled: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range audit.Findings {
		if f.OK != (f.Broken == 0) || f.OK != (len(f.Rows) == 0) {
			t.Errorf("%+v contradicts itself", f)
		}
		if !f.OK {
			names = append(names, f.ID)
		}
	}
	if audit.OK != (len(names) == 0) || audit.OK != (audit.Err() == nil) {
		t.Errorf("verdict %v (%v) with %q", audit.OK, audit.Err(), names)
	}
	return names
}

// shopTables are the tables that the audit reads.
var shopTables = []string{"points_entry", "outbox_purged", "outbox_event", "payment", "voucher_order", "voucher_stock"}

// keep copies the tables for restore.
func keep(t *testing.T, db *DB) {
	t.Helper()
	for _, table := range shopTables {
		if err := db.gorm.Exec("CREATE TABLE kept_" + table + " AS SELECT * FROM " + table).Error; err != nil {
			t.Fatal(err)
		}
	}
}

func restore(t *testing.T, db *DB) {
	t.Helper()
	err := db.inTx(t.Context(), func(tx *gorm.DB) (err error) {
		for _, table := range shopTables {
			err = errors.Join(err, tx.Exec("DELETE FROM "+table).Error, tx.Exec("INSERT INTO "+table+" SELECT * FROM kept_"+table).Error)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// soundShop puts an order of each kind into an empty database. It returns the values of the placeholders.
func soundShop(t *testing.T, db *DB) *strings.Replacer {
	t.Helper()
	voucher, empty := onSale(t, db, 20, 2), onSale(t, db, 5, 1)
	names := []string{"{id}", nextID().String(), "{voucher}", voucher.String(), "{empty}", empty.String(), "{now}", db.dialect.now}
	for i, name := range []string{"pending", "paid", "cancelled", "expired"} {
		o := placed(t, db, voucher, service.UserID(i+1))
		names = append(names, "{"+name+"}", o.ID.String())
		switch name {
		case "paid":
			changeAll(t, db, o, "pay")
			entry := service.PointsEntry{OrderID: o.ID, UserID: o.UserID, Points: 10}
			if booked, err := NewConsumerStore(db).BookPoints(t.Context(), paidEvent(t, db, o.ID), entry); err != nil || !booked {
				t.Fatal(booked, err)
			}
		case "cancelled":
			changeAll(t, db, o, "cancel", fmt.Sprint("pay late-", o.ID))
		case "expired":
			makeOverdue(t, db, o.ID)
			changeAll(t, db, o, "expire")
		}
	}
	placed(t, db, voucher, 5)
	placed(t, db, voucher, 5)
	if err := db.gorm.Exec("UPDATE outbox_event SET status = 1").Error; err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(names...)
}

func changeAll(t *testing.T, db *DB, o service.Order, steps ...string) {
	t.Helper()
	for _, step := range steps {
		if _, err := change(t.Context(), db, o, step); err != nil && service.CodeOf(err) != service.CodeRefundDue {
			t.Fatalf("%s: %v", step, err)
		}
	}
}

func paidEvent(t *testing.T, db *DB, order idgen.ID) (id idgen.ID) {
	t.Helper()
	if err := db.gorm.Raw("SELECT event_id FROM outbox_event WHERE biz_id = ? AND biz_type = 'ORDER_PAID'", order).Scan(&id).Error; err != nil || id == 0 {
		t.Fatal(id, err)
	}
	return id
}

// The constraints of the database refuse most of what the audit looks for.
func TestSchema_RefusesDefects(t *testing.T) {
	t.Parallel()
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db := openDB(t, target)
		values := soundShop(t, db)
		for _, statement := range []string{
			"UPDATE voucher_stock SET stock = -1 WHERE voucher_id = {voucher}",
			"UPDATE voucher_stock SET stock = total + 1 WHERE voucher_id = {voucher}",
			"UPDATE voucher_order SET slot = 0 WHERE user_id = 5",
			"UPDATE voucher_order SET slot = 0 WHERE id = {cancelled}",
			"UPDATE voucher_order SET slot = NULL WHERE id = {pending}",
			"UPDATE voucher_order SET status = 3 WHERE id = {paid}",
			"UPDATE voucher_order SET request_id = 'same' WHERE user_id = 5",
			"UPDATE outbox_event SET event_id = {paid}",
			"UPDATE payment SET payment_id = 'same'",
		} {
			if err := db.gorm.Exec(values.Replace(statement)).Error; err == nil {
				t.Errorf("%s was accepted", statement)
			}
		}
	})
}

func TestAudit_Totals(t *testing.T) {
	t.Parallel()
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db := openDB(t, target)
		soundShop(t, db)
		audit, err := db.Audit(t.Context(), AuditOptions{Settled: true})
		want := service.AuditTotals{Vouchers: 2, Total: 25, Stock: 21, Orders: 6, Live: 4, Pending: 3, Paid: 1, Closed: 2, Events: 10, Effects: 1, RefundsDue: 1}
		if err != nil || audit.Totals != want {
			t.Errorf("%+v (%v), want %+v", audit.Totals, err, want)
		}
	})
}
