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

// wrongs plants what each check of the audit is there to find. In the statements, {pending} and the like stand for the
// ids of orders in the state that their names say, {now} for the database's time and {id} for one that is new.
var wrongs = []struct {
	check string
	plant []string
}{
	{"stock is not below zero", []string{"UPDATE voucher_stock SET total = total - stock - 1, stock = -1 WHERE voucher_id = {voucher}"}},
	{"total = stock + live orders", []string{"UPDATE voucher_stock SET stock = stock - 1 WHERE voucher_id = {voucher}"}},
	{"total = stock + live orders", []string{"UPDATE voucher_stock SET total = total + 1 WHERE voucher_id = {empty}"}},
	{"every placed order is counted", []string{"UPDATE voucher_stock SET placed = placed + 1 WHERE voucher_id = {voucher}"}},
	{"every order is of a voucher on sale", []string{"UPDATE voucher_order SET voucher_id = {id} WHERE id = {pending}",
		"UPDATE voucher_stock SET stock = stock + 1, placed = placed - 1 WHERE voucher_id = {voucher}"}},
	{"no user holds more live orders than the limit", []string{"UPDATE voucher_stock SET user_limit = 1 WHERE voucher_id = {voucher}"}},
	{"a slot is held by an order that is live, and by one", []string{"UPDATE voucher_order SET slot = 0 WHERE user_id = 5"}},
	{"a slot is held by an order that is live, and by one", []string{"UPDATE voucher_order SET slot = 0 WHERE id = {cancelled}",
		"UPDATE voucher_stock SET stock = stock - 1 WHERE voucher_id = {voucher}"}},
	{"a live order holds a slot", []string{"UPDATE voucher_order SET slot = NULL WHERE id = {pending}",
		"UPDATE voucher_stock SET stock = stock + 1 WHERE voucher_id = {voucher}"}},
	{"one request id, one order", []string{"UPDATE voucher_order SET request_id = 'same' WHERE user_id = 5"}},
	{"no id was handed out twice", []string{"UPDATE outbox_event SET event_id = {paid} WHERE biz_id = {pending}"}},
	{"an order is paid or closed, and its times say the same", []string{"UPDATE voucher_order SET paid_at = {now} WHERE id = {pending}"}},
	{"an order is paid or closed, and its times say the same", []string{"UPDATE voucher_order SET closed_at = {now}, close_reason = 1 WHERE id = {paid}"}},
	{"an order is paid or closed, and its times say the same", []string{"UPDATE voucher_order SET pay_by = {now} WHERE id = {expired}"}},
	{"an order is paid or closed, and its times say the same", []string{"UPDATE voucher_order SET pay_by = NULL WHERE id = {pending}"}},
	{"a paid order has one payment that was applied, others have none", []string{"DELETE FROM payment WHERE order_id = {paid}"}},
	{"a paid order has one payment that was applied, others have none", []string{
		"INSERT INTO payment (payment_id, order_id, amount_cents, refund_due, created_at) VALUES ('x', {pending}, 1, 0, {now})"}},
	{"every payment is for an order", []string{
		"INSERT INTO payment (payment_id, order_id, amount_cents, refund_due, created_at) VALUES ('x', {id}, 1, 0, {now})"}},
	{"every change of an order has its event", []string{"DELETE FROM outbox_event WHERE biz_id = {pending}"}},
	{"every change of an order has its event", []string{"DELETE FROM outbox_event WHERE biz_id = {cancelled} AND biz_type = 'ORDER_REFUND_DUE'"}},
	{"every change of an order has its event", []string{"UPDATE outbox_event SET biz_type = 'ORDER_EXPIRED' WHERE biz_type = 'ORDER_CANCELLED'"}},
	{"every change of an order has its event", []string{"UPDATE voucher_order SET version = version + 1 WHERE id = {expired}"}},
	{"every change of an order has its event", []string{"UPDATE outbox_event SET version = 1 WHERE biz_id = {paid}"}},
	{"every change of an order has its event", []string{"DELETE FROM payment WHERE refund_due = 1"}},
	{"no order has more events than changes, after a purge", []string{
		"INSERT INTO outbox_purged (biz_type, events, latest_created_at) VALUES ('ORDER_CREATED', 1, {now})",
		"DELETE FROM outbox_event WHERE biz_id = {pending}", "UPDATE outbox_event SET version = 1 WHERE biz_id = {paid}"}},
	{"what was purged makes up for what is gone", []string{
		"INSERT INTO outbox_purged (biz_type, events, latest_created_at) VALUES ('ORDER_CREATED', 2, {now})",
		"DELETE FROM outbox_event WHERE biz_id = {pending}"}},
	{"no event stands without its order", []string{"INSERT INTO outbox_event (event_id, biz_type, biz_id, version, payload, status," +
		" next_retry_time, created_at, updated_at) VALUES ({id}, 'ORDER_CREATED', {id}, 1, '{}', 1, {now}, {now}, {now})"}},
	{"no effect happened twice", []string{"INSERT INTO points_entry (order_id, user_id, points, created_at) VALUES ({paid}, 2, 10, {now})"}},
	{"no effect without its event", []string{"INSERT INTO points_entry (order_id, user_id, points, created_at) VALUES ({pending}, 1, 10, {now})"}},
	{"every event was sent", []string{"UPDATE outbox_event SET status = 0 WHERE biz_id = {expired}"}},
	{"every event was sent", []string{"UPDATE outbox_event SET status = 2 WHERE biz_id = {expired}"}},
	{"every paid order has its effect", []string{"DELETE FROM points_entry"}},
	{"nothing was sold outside of the window", []string{"UPDATE voucher_stock SET starts_at = ends_at WHERE voucher_id = {voucher}"}},
	{"nothing was sold outside of the window", []string{"UPDATE voucher_stock SET ends_at = starts_at WHERE voucher_id = {voucher}"}},
}

// The audit finds what is wrong, and nothing else.
func TestAuditFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db := openRaw(t, target, PoolOptions{})
		if _, err := db.Migrate(t.Context()); err != nil {
			t.Fatal(err)
		}
		dropConstraints(t, db)
		values := aSoundShop(t, db)
		keep(t, db)
		tried := map[string]bool{}
		for _, wrong := range wrongs {
			tried[wrong.check] = true
			restore(t, db)
			for _, statement := range wrong.plant {
				result := db.gorm.Exec(values.Replace(statement))
				if result.Error != nil || result.RowsAffected == 0 {
					t.Fatalf("%s: %v, %d rows", statement, result.Error, result.RowsAffected)
				}
			}
			if broken := brokenChecks(t, db); !slices.Equal(broken, []string{wrong.check}) {
				t.Errorf("%s:\n  found %q, want %q", wrong.plant, broken, wrong.check)
			}
		}
		restore(t, db)
		if broken := brokenChecks(t, db); len(broken) > 0 {
			t.Errorf("a sound shop breaks %q", broken)
		}
		for _, c := range auditChecks {
			if !tried[c.name] {
				t.Errorf("nothing is planted for %q", c.name)
			}
		}
	})
}

// brokenChecks lists the checks that fail when everything has settled.
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
			names = append(names, f.Check)
		}
	}
	if audit.OK != (len(names) == 0) || audit.OK != (audit.Err() == nil) {
		t.Errorf("verdict %v (%v) with %q", audit.OK, audit.Err(), names)
	}
	return names
}

// shopTables are all that the audit looks at.
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

// aSoundShop puts an order of each kind into an empty database. It returns what the plants stand for.
func aSoundShop(t *testing.T, db *DB) *strings.Replacer {
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
			if booked, err := NewConsumed(db).BookPoints(t.Context(), paidEvent(t, db, o.ID), entry); err != nil || !booked {
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

// What the audit looks for the database does not let in.
func TestTheDatabaseRefusesWhatIsWrong(t *testing.T) {
	t.Parallel()
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db := openDB(t, target)
		values := aSoundShop(t, db)
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
				t.Errorf("%s was let in", statement)
			}
		}
	})
}

func TestAuditCountsWhatItSaw(t *testing.T) {
	t.Parallel()
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db := openDB(t, target)
		aSoundShop(t, db)
		audit, err := db.Audit(t.Context(), AuditOptions{Settled: true})
		want := Totals{Vouchers: 2, Total: 25, Stock: 21, Orders: 6, Pending: 3, Paid: 1, Closed: 2, Events: 10, Effects: 1, Refunds: 1, Surviving: 4}
		if err != nil || audit.Totals != want {
			t.Errorf("%+v (%v), want %+v", audit.Totals, err, want)
		}
	})
}
