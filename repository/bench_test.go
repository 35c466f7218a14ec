package repository

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seckill/repository/repotest/dbserver"
	"seckill/repository/repotest/dbtest"
	"seckill/service"
)

// BenchmarkPlace commits batches of orders by users who come for the first time, one batch after the other. An
// operation is one batch; orders/s counts durable orders.
func BenchmarkPlace(b *testing.B) {
	forEach(b, func(b *testing.B, open func() *DB) {
		db := open()
		for _, size := range []int{1, 16, 256} {
			b.Run(fmt.Sprint(size), func(b *testing.B) { placeBatches(b, db, size) })
		}
	})
}

func placeBatches(b *testing.B, db *DB, size int) {
	voucher := onSale(b, db, service.MaxStock, 1)
	user := service.UserID(0)
	orders := NewOrders(db)
	b.ReportAllocs()
	for b.Loop() {
		batch := make([]*service.Placement, size)
		for i := range batch {
			user++
			batch[i] = placement(voucher, user, "")
		}
		orders.Place(context.Background(), voucher, batch)
		for _, p := range batch {
			if p.Err != nil {
				b.Fatal(p.Err)
			}
		}
	}
	b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "orders/s")
}

// forEach runs a benchmark on every engine. Each call of open creates another database.
func forEach(b *testing.B, bench func(b *testing.B, open func() *DB)) {
	b.Run(dbtest.SQLite, func(b *testing.B) {
		bench(b, func() *DB {
			return openDB(b, dbtest.Database{Engine: dbtest.SQLite, DSN: b.TempDir() + "/seckill.db"})
		})
	})
	for _, engine := range dbserver.Engines() {
		b.Run(string(engine), func(b *testing.B) {
			dsn := os.Getenv(dbserver.Variable(engine))
			if dsn == "" {
				b.Skipf("%s is not set: go run ./cmd/test provides servers", dbserver.Variable(engine))
			}
			bench(b, func() *DB { return openDB(b, benchDatabase(b, string(engine), dsn)) })
		})
	}
}

// benchDatabase creates a database and drops it after the benchmark.
func benchDatabase(b *testing.B, engine, dsn string) dbtest.Database {
	b.Helper()
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		b.Fatal(err)
	}
	admin, err := sql.Open("mysql", dsn)
	if err != nil {
		b.Fatal(err)
	}
	cfg.DBName = "bench_" + strings.ToLower(rand.Text()[:12])
	if _, err := admin.ExecContext(b.Context(), "CREATE DATABASE "+cfg.DBName); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if _, err := admin.ExecContext(context.Background(), "DROP DATABASE "+cfg.DBName); err != nil {
			b.Error(err)
		}
		_ = admin.Close()
	})
	return dbtest.Database{Engine: engine, DSN: cfg.FormatDSN(), Addr: cfg.Addr, Name: cfg.DBName}
}
