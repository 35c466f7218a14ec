package repository

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"seckill/repository/repotest/dbtest"
	"seckill/service"
)

// Negative controls: the shop is broken on purpose, and the checks of the other tests must notice it.

// replacing replaces a part of the statements that contain it.
func replacing(old, by string) func(query string) string {
	return func(query string) string { return strings.ReplaceAll(query, old, by) }
}

// leavingOut drops the statements that begin with a text.
func leavingOut(prefix string) func(query string) string {
	return func(query string) string {
		if strings.HasPrefix(query, prefix) {
			return ""
		}
		return query
	}
}

// shifted gives each order the verdict of the next one.
func shifted(batch []*service.Placement) {
	first := *batch[0]
	for i := range batch[1:] {
		batch[i].Err, batch[i].Replayed = batch[i+1].Err, batch[i+1].Replayed
	}
	last := batch[len(batch)-1]
	last.Err, last.Replayed = first.Err, first.Replayed
}

func TestControls_BrokenAccountingIsNoticed(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		rewrite func(query string) string
		spoil   func(batch []*service.Placement)
	}{
		{"nothing is broken", nil, nil}, // the controls must not fail a correct shop
		{"> for >=", replacing("AND stock >= ?", "AND stock > ?"), nil},
		{"orders take no unit", replacing("SET stock = stock - ?", "SET stock = stock - 0 * ?"), nil},
		{"a batch takes one unit", replacing("SET stock = stock - ?, placed = placed + ?", "SET stock = stock - 1 + 0 * ?, placed = placed + ?"), nil},
		{"placed orders are not counted", replacing("placed = placed + ?", "placed = placed + 0 * ?"), nil},
		{"events are left out", leavingOut("INSERT INTO outbox_event"), nil},
		{"versions are left out", replacing("version = version + 1", "version = version + 2"), nil},
		{"a unit is returned twice", replacing("SET stock = stock + ?", "SET stock = stock + 2 * ?"), nil},
		{"no unit is returned", leavingOut("UPDATE voucher_stock SET stock = stock + ?"), nil},
		{"a closed order keeps its slot", replacing("slot = NULL, ", ""), nil},
		{"a payment is not kept", leavingOut("INSERT INTO payment"), nil},
		{"what is overdue does not matter", replacing("AND o.pay_by <=", "AND o.id <="), nil},
		{"units are added twice", replacing("total = total + ?, stock = stock + ?", "total = total + ?, stock = stock + 2 * ?"), nil},
		{"the answer comes before the commit", leavingOut("COMMIT"), nil},
		{"verdicts are shifted by one", nil, shifted},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			db := openRaw(t, dbtest.Database{Engine: dbtest.SQLite, DSN: t.TempDir() + "/seckill.db"}, PoolOptions{})
			if _, err := db.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			w := tap(t, db)
			if err := db.gorm.Exec("PRAGMA synchronous = OFF").Error; err != nil {
				t.Fatal(err)
			}
			w.set(func(w *wire) { w.rewrite = onlyInOrders(tt.rewrite) })
			var noticed error
			for seed := uint64(1); seed <= 25 && noticed == nil; seed++ {
				h := &history{t: t, db: db, wire: w, limit: time.Second, rng: rand.New(rand.NewPCG(seed, 0)), spoil: tt.spoil}
				noticed = h.run(15)
			}
			audit, err := db.Audit(t.Context(), AuditOptions{})
			if err != nil {
				t.Fatal(err)
			}
			broken := tt.rewrite != nil || tt.spoil != nil
			if noticed = errors.Join(noticed, audit.Err()); (noticed != nil) != broken {
				t.Errorf("broken: %v, noticed: %v", broken, noticed)
			}
			if broken && noticed != nil {
				text, _, _ := strings.Cut(noticed.Error(), "\n")
				t.Log(text)
			}
		})
	}
}

// onlyInOrders does not rewrite the creation of vouchers: without its COMMIT, the history would end there.
func onlyInOrders(rewrite func(query string) string) func(query string) string {
	if rewrite == nil {
		return nil
	}
	ordering := false
	return func(query string) string {
		switch {
		case strings.HasPrefix(query, "INSERT INTO voucher_order"):
			ordering = true
		case query == "BEGIN":
			ordering = false
		case query == "COMMIT" && !ordering:
			return query
		}
		return rewrite(query)
	}
}

// overtaken places a batch on an instance that reads the terms, then lets other run, then begins its transaction. It
// returns the verdicts.
func overtaken(t *testing.T, db *DB, other func(w *wire), batch ...*service.Placement) []string {
	t.Helper()
	w := tap(t, db)
	once := false
	w.set(func(w *wire) {
		w.before = func(query string) error {
			if query == "BEGIN" && !once {
				once = true
				other(w)
			}
			return nil
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	NewOrders(db).Place(ctx, batch[0].Order.VoucherID, batch)
	if !once {
		t.Fatal("the transaction did not begin")
	}
	return verdicts(batch)
}

// Each condition of the guard is needed: with it the slower instance gets a correct answer, without it the audit or the
// answer is wrong.
func TestGuard_EachConditionIsNeeded(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		key    string // of the slower user's request
		faster func(db *DB, first, second *service.Placement)
		want   string
		drop   func(t *testing.T, db *DB, w *wire) // the condition
	}{
		{"stock", "", func(db *DB, first, _ *service.Placement) {
			other := placement(first.Order.VoucherID, 77, "")
			NewOrders(db).Place(context.Background(), first.Order.VoucherID, []*service.Placement{other})
		}, "sold-out", func(t *testing.T, db *DB, w *wire) {
			dropConstraints(t, db)
			w.set(func(w *wire) { w.rewrite = replacing("AND stock >= ?", "AND ? > 0") })
		}},
		{"slot", "", func(db *DB, first, second *service.Placement) {
			addUnits(db, first)
			second.Order.RequestID = "another"
			NewOrders(db).Place(context.Background(), first.Order.VoucherID, []*service.Placement{second})
		}, "already-ordered", func(t *testing.T, db *DB, _ *wire) { dropConstraints(t, db) }},
		{"request", "key", func(db *DB, first, second *service.Placement) {
			addUnits(db, first)
			limit := 2
			_ = NewVouchers(db).Change(context.Background(), first.Order.VoucherID, service.VoucherChange{UserLimit: &limit})
			NewOrders(db).Place(context.Background(), first.Order.VoucherID, []*service.Placement{second})
		}, "replayed", func(t *testing.T, db *DB, _ *wire) { dropConstraints(t, db) }},
		{"end", "", func(db *DB, first, _ *service.Placement) {
			_ = NewVouchers(db).End(context.Background(), first.Order.VoucherID)
			waitForEnd(db, first.Order.VoucherID)
		}, "sale-ended", func(_ *testing.T, _ *DB, w *wire) {
			w.set(func(w *wire) { w.rewrite = replacing("AND ends_at >", "AND 0 <>") })
		}},
	}
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		openDB(t, target)
		for i, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				db, faster := openRaw(t, target, PoolOptions{}), openRaw(t, target, PoolOptions{})
				voucher, user := onSale(t, faster, 1, 1), service.UserID(1000+10*i)
				first, second := placement(voucher, user, tt.key), placement(voucher, user, tt.key)
				got := overtaken(t, db, func(*wire) { tt.faster(faster, first, second) }, first)
				if !slices.Equal(got, []string{tt.want}) {
					t.Errorf("answered %v (%v), want %s", got, first.Err, tt.want)
				}
			})
		}
	})
	for _, tt := range tests {
		t.Run("without "+tt.name, func(t *testing.T) {
			target := dbtest.Database{Engine: dbtest.SQLite, DSN: t.TempDir() + "/seckill.db"}
			db, faster := openRaw(t, target, PoolOptions{}), openRaw(t, target, PoolOptions{})
			if _, err := db.Migrate(t.Context()); err != nil {
				t.Fatal(err)
			}
			voucher := onSale(t, faster, 1, 1)
			first, second := placement(voucher, 1, tt.key), placement(voucher, 1, tt.key)
			got := overtaken(t, db, func(w *wire) {
				tt.drop(t, faster, w)
				tt.faster(faster, first, second)
			}, first)
			audit, err := faster.Audit(t.Context(), AuditOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if slices.Equal(got, []string{tt.want}) && audit.OK {
				t.Errorf("answered %v, and the audit is content: nothing was noticed", got)
			}
		})
	}
}

// addUnits ensures that the stock does not decide.
func addUnits(db *DB, p *service.Placement) {
	_ = NewVouchers(db).AddStock(context.Background(), p.Order.VoucherID, 5, "more")
}

// dropConstraints drops the constraints that refuse wrong rows.
func dropConstraints(t *testing.T, db *DB) {
	t.Helper()
	statements := []string{
		"ALTER TABLE voucher_stock DROP CONSTRAINT stock_not_oversold", "ALTER TABLE voucher_stock DROP CONSTRAINT stock_within_total",
		"ALTER TABLE voucher_order DROP CONSTRAINT closed_order_has_no_slot",
		"ALTER TABLE voucher_order DROP INDEX order_once_per_slot", "ALTER TABLE voucher_order DROP INDEX order_once_per_request",
	}
	if db.Name() == dbtest.SQLite {
		statements = []string{"PRAGMA ignore_check_constraints = ON", "DROP INDEX order_once_per_slot", "DROP INDEX order_once_per_request"}
	}
	for _, s := range statements {
		if err := db.gorm.Exec(s).Error; err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}
