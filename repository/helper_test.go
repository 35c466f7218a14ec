package repository

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"seckill/repository/repotest/dbtest"
	"seckill/service"
	"seckill/service/idgen"
)

// openDB opens and migrates a test's database, and audits it at the end of the test.
func openDB(t testing.TB, target dbtest.Database) *DB {
	t.Helper()
	db := openRaw(t, target, PoolOptions{})
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { audited(t, db) })
	return db
}

// audited fails the test if an invariant does not hold.
func audited(t testing.TB, db *DB) {
	t.Helper()
	audit, err := db.Audit(context.Background(), AuditOptions{})
	if err == nil {
		err = audit.Err()
	}
	if err != nil {
		t.Error(err)
	}
}

func openRaw(t testing.TB, target dbtest.Database, opts PoolOptions) *DB {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	var db *DB
	var err error
	if target.Engine == dbtest.SQLite {
		db, err = OpenSQLite(target.DSN, log)
	} else {
		db, err = OpenMySQL(t.Context(), target.DSN, opts, log)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// nextID replaces the generator: within one test database a counter is unique.
var lastID atomic.Int64

func nextID() idgen.ID { return idgen.ID(lastID.Add(1)) }

// onSale creates a voucher that is on sale now.
func onSale(t testing.TB, db *DB, stock int64, userLimit int) idgen.ID {
	t.Helper()
	return createVoucher(t, db, service.NewVoucher{
		Title: "voucher", PriceCents: 1000, Stock: stock, UserLimit: userLimit, PayWithin: time.Hour,
		StartsAt: time.Now().Add(-time.Hour), EndsAt: time.Now().Add(time.Hour),
	})
}

func createVoucher(t testing.TB, db *DB, v service.NewVoucher) idgen.ID {
	t.Helper()
	id := nextID()
	if err := NewVouchers(db).Create(t.Context(), id, v); err != nil {
		t.Fatal(err)
	}
	return id
}

// placement asks for one unit. An empty request id stands for a client that sent none.
func placement(voucher idgen.ID, user service.UserID, requestID string) *service.Placement {
	p := &service.Placement{
		Order:     service.Order{ID: nextID(), VoucherID: voucher, UserID: user, RequestID: requestID, PriceCents: 1000},
		EventID:   nextID(),
		PayWithin: time.Hour,
	}
	if requestID == "" {
		p.Order.RequestID = p.Order.ID.String()
	}
	return p
}

// place commits a batch and returns it.
func place(t *testing.T, db *DB, batch ...*service.Placement) []*service.Placement {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	NewOrders(db).Place(ctx, batch[0].Order.VoucherID, batch)
	return batch
}

// verdicts lists the results of a batch: "placed", "replayed", or the code of the refusal.
func verdicts(batch []*service.Placement) []string {
	out := make([]string, len(batch))
	for i, p := range batch {
		switch {
		case p.Err != nil:
			out[i] = string(service.CodeOf(p.Err))
		case p.Replayed:
			out[i] = "replayed"
		default:
			out[i] = "placed"
		}
	}
	return out
}

func stockOf(t *testing.T, db *DB, voucher idgen.ID) int64 {
	t.Helper()
	terms, _, err := NewVouchers(db).Terms(t.Context(), voucher)
	if err != nil {
		t.Fatal(err)
	}
	return terms.Stock
}

// waitForEnd waits until the sale has ended by the database's clock: an ended sale includes its last millisecond.
func waitForEnd(db *DB, voucher idgen.ID) {
	for {
		terms, now, err := readTerms(db.gorm, db.dialect, voucher)
		if err != nil || !now.Before(terms.EndsAt) {
			return
		}
	}
}
