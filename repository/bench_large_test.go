package repository

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"seckill/repository/repotest/dbserver"
	"seckill/service"
)

// rowsVariable is how many orders the table of BenchmarkPlaceAmongMany has. Five million take some minutes and 2 GB.
const rowsVariable = "SECKILL_BENCH_ROWS"

// poolVariable sets the server's buffer pool, in bytes, where its own setting would not do for so many rows: users come
// from everywhere, so each order reads another leaf of the indexes by user.
const poolVariable = "SECKILL_BENCH_BUFFER_POOL"

// BenchmarkPlaceAmongMany compares the time of a batch of 256 in a table of many orders with that in an empty one. The
// two take turns on a server of their own; "ratio" is the throughput among many over that of the empty table.
func BenchmarkPlaceAmongMany(b *testing.B) {
	rows := 200_000
	if text := os.Getenv(rowsVariable); text != "" {
		var err error
		if rows, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	for _, engine := range dbserver.Engines() {
		b.Run(string(engine), func(b *testing.B) { placeAmong(b, engine, rows) })
	}
}

func placeAmong(b *testing.B, engine dbserver.Engine, rows int) {
	dsn := ownServer(b, engine)
	open := func() *indexLane {
		db := openRaw(b, benchDatabase(b, string(engine), dsn), PoolOptions{}) // the filler rows would fail the audit
		if _, err := db.Migrate(b.Context()); err != nil {
			b.Fatal(err)
		}
		return newIndexLane(b, db, "")
	}
	empty, full := open(), open()
	lastID.Add(int64(rows)) // ids continue above the existing ones
	start := time.Now()
	fillOrders(b, full.db, rows)
	b.Logf("%d orders in %s", rows, time.Since(start).Round(time.Second))
	for turn := 0; b.Loop(); turn++ {
		lanes := [2]*indexLane{empty, full}
		lanes[turn%2].batch(b)
		lanes[1-turn%2].batch(b)
	}
	b.ReportMetric(empty.median()/full.median(), "ratio")
	b.ReportMetric(256/empty.median(), "orders/s-empty")
	b.ReportMetric(256/full.median(), "orders/s-full")
}

// fillOrders inserts orders of a voucher that was sold long ago, by users from the whole range.
func fillOrders(b *testing.B, db *DB, rows int) {
	b.Helper()
	ctx := context.Background()
	conn, err := db.sql.Conn(ctx)
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	exec := func(query string, args ...any) {
		if _, err := conn.ExecContext(ctx, query, args...); err != nil {
			b.Fatal(err)
		}
	}
	if pool := os.Getenv(poolVariable); pool != "" {
		exec("SET GLOBAL innodb_buffer_pool_size = " + pool)
	}
	exec("SET SESSION sql_log_bin = 0")
	exec("SET GLOBAL innodb_flush_log_at_trx_commit = 0") // this is not what is measured
	exec("INSERT INTO voucher_order (id, voucher_id, user_id, slot, request_id, status, version, price_cents, created_at, paid_at)"+
		" VALUES (1, 1, 1, 0, '1', ?, 2, 1000, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))", service.Paid)
	apart := (1 << 40) / rows
	for n := 1; n < rows; {
		more := min(n, rows-n, 200_000)
		exec("INSERT INTO voucher_order (id, voucher_id, user_id, slot, request_id, status, version, price_cents, created_at, paid_at)"+
			" SELECT id + ?, voucher_id, user_id + ? * ?, slot, id + ?, status, version, price_cents, created_at, paid_at"+
			" FROM voucher_order WHERE id <= ? ORDER BY id", n, n, apart, n, more)
		n += more
	}
	exec("SET GLOBAL innodb_flush_log_at_trx_commit = 1")
}
