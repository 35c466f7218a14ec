package repository

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seckill/repository/repotest/dbtest"
	"seckill/service"
)

func TestServerOf_Versions(t *testing.T) {
	t.Parallel()
	tests := []struct {
		version string
		product string
		refused string // part of the error; empty for a server that is supported
	}{
		{"9.7.0", "MySQL", ""},
		{"8.4.0", "MySQL", ""},
		{"8.4.6-0ubuntu1", "MySQL", ""},
		{"10.0.1-commercial", "MySQL", ""},
		{"8.3.0", "MySQL", "MySQL 8.4"},
		{"8.0.43-log", "MySQL", "MySQL 8.4"},
		{"5.7.44", "MySQL", "MySQL 8.4"},
		{"10.6.0-MariaDB", "MariaDB", ""},
		{"10.11.14-MariaDB-0+deb12u2", "MariaDB", ""},
		{"11.8.3-MariaDB-ubu2404", "MariaDB", ""},
		{"5.5.5-10.11.6-MariaDB-log", "MariaDB", ""},
		{"10.5.29-MariaDB", "MariaDB", "MariaDB 10.6"},
		{"5.5.5-10.4.1-MariaDB", "MariaDB", "MariaDB 10.6"},
		{"5.5.68-MariaDB", "MariaDB", "MariaDB 10.6"},
		{"", "MySQL", "cannot read"},
		{"9", "MySQL", "cannot read"},
		{"nine.seven", "MySQL", "cannot read"},
	}
	for _, tt := range tests {
		kind, err := serverOf(tt.version)
		if kind.product != tt.product {
			t.Errorf("%q: got %s", tt.version, kind.product)
		}
		if tt.refused == "" && err != nil || tt.refused != "" && (err == nil || !strings.Contains(err.Error(), tt.refused)) {
			t.Errorf("%q: error %v, want %q", tt.version, err, tt.refused)
		}
	}
}

func TestMigrate_ManyInstancesAtOnce(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		var dbs [4]*DB
		for i := range dbs {
			dbs[i] = openRaw(t, target, PoolOptions{})
			if err := dbs[i].Migrated(t.Context()); !errors.Is(err, ErrNotMigrated) {
				t.Errorf("before: %v", err)
			}
		}
		var steps atomic.Int32
		migrate := func(db *DB) func() {
			return func() {
				done, err := db.Migrate(t.Context())
				if err != nil {
					t.Error(err)
				}
				steps.Add(int32(len(done)))
			}
		}
		atOnce(migrate(dbs[0]), migrate(dbs[1]), migrate(dbs[2]), migrate(dbs[3]))
		all, err := dbs[0].Migrations(t.Context())
		if err != nil || len(all) == 0 || int(steps.Load()) != len(all) {
			t.Errorf("%d steps were taken, want each of %v once (%v)", steps.Load(), all, err)
		}
		for i, db := range dbs {
			if err := db.Migrated(t.Context()); err != nil {
				t.Errorf("instance %d: %v", i, err)
			}
			placed(t, db, onSale(t, db, 1, 1), 1)
		}
		audited(t, dbs[0])
	})
}

func TestMigrate_SQLite(t *testing.T) {
	t.Parallel()
	db := openRaw(t, dbtest.Database{Engine: dbtest.SQLite, DSN: t.TempDir() + "/seckill.db"}, PoolOptions{})
	if err := db.Migrated(t.Context()); !errors.Is(err, ErrNotMigrated) {
		t.Errorf("before: %v", err)
	}
	all, err := db.Migrations(t.Context())
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	for _, want := range []int{len(all), 0} {
		if done, err := db.Migrate(t.Context()); err != nil || len(done) != want {
			t.Errorf("%v, %v, want %d steps", done, err, want)
		}
	}
	if err := db.Migrated(t.Context()); err != nil {
		t.Error(err)
	}
	audited(t, db)
}

// The settings of the shop hold whatever the DSN says, so every instance sees the same times and counts.
func TestOpenMySQL_SettingsReplaceThoseOfTheDSN(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		plain := openDB(t, target)
		cfg, err := mysql.ParseDSN(target.DSN)
		if err != nil {
			t.Fatal(err)
		}
		cfg.Loc = time.FixedZone("far", 9*3600)
		odd := strings.Replace(cfg.FormatDSN(), "loc=far", "loc=Asia%2FShanghai", 1)
		if odd == cfg.FormatDSN() {
			t.Fatalf("no zone in %s", odd)
		}
		odd += "&parseTime=false&clientFoundRows=true&interpolateParams=false&multiStatements=false" +
			"&time_zone=%27%2B08%3A00%27&sql_mode=%27%27&innodb_lock_wait_timeout=1&wait_timeout=28800" +
			"&columnsWithAlias=true&timeTruncate=1h&Wait_Timeout=28801&autocommit=0&charset=latin1"
		db := openRaw(t, dbtest.Database{Engine: target.Engine, DSN: odd}, PoolOptions{})
		for query, want := range map[string]string{
			"SELECT @@time_zone":                            "+00:00",
			"SELECT @@wait_timeout":                         "10",
			"SELECT @@autocommit":                           "1",
			"SELECT @@character_set_client":                 "utf8mb4",
			"SELECT @@innodb_lock_wait_timeout":             "5",
			"SELECT INSTR(@@sql_mode, 'STRICT_ALL_TABLES')": "1",
		} {
			var got string
			if err := db.gorm.Raw(query).Row().Scan(&got); err != nil || got != want {
				t.Errorf("%s: %q (%v), want %q", query, got, err, want)
			}
		}
		var isolation string
		kind, _ := serverOf(db.Version())
		if err := db.gorm.Raw("SELECT @@" + kind.isolation).Row().Scan(&isolation); err != nil || isolation != "READ-COMMITTED" {
			t.Errorf("isolation %q (%v)", isolation, err)
		}
		checkTwoZones(t, plain, db)
	})
}

// checkTwoZones lets two instances serve the same vouchers and compares what they see.
func checkTwoZones(t *testing.T, one, other *DB) {
	t.Helper()
	voucher := onSale(t, one, 3, 1)
	o := placed(t, other, voucher, 1)
	if apart := time.Since(o.CreatedAt); apart < -time.Minute || apart > time.Minute {
		t.Errorf("placed at %s, it is %s", o.CreatedAt, time.Now())
	}
	if got := place(t, other, placement(voucher, 1, ""), placement(voucher, 2, ""))[0]; service.CodeOf(got.Err) != service.CodeAlreadyOrdered {
		t.Errorf("a second order: %v", got.Err) // counting found rows instead of changed ones would let it pass
	}
	seen, err := NewOrders(one).Order(t.Context(), o.ID)
	if err != nil || seen != o {
		t.Errorf("one instance sees %+v, the other %+v (%v)", seen, o, err)
	}
	if _, err := change(t.Context(), other, o, "cancel"); err != nil {
		t.Error(err)
	}
	for _, window := range []struct {
		start, end time.Duration
		want       service.Code
	}{{-time.Minute, time.Minute, ""}, {-2 * time.Minute, -time.Minute, service.CodeEnded}, {time.Minute, 2 * time.Minute, service.CodeNotStarted}} {
		now := time.Now()
		voucher := createVoucher(t, one, service.NewVoucher{Title: "t", Stock: 2, UserLimit: 2, PayWithin: time.Second,
			StartsAt: now.Add(window.start), EndsAt: now.Add(window.end)})
		for _, db := range []*DB{one, other} {
			if got := place(t, db, placement(voucher, 1, ""))[0]; service.CodeOf(got.Err) != window.want {
				t.Errorf("window %+v: got %v", window, got.Err)
			}
		}
	}
}

// zoneVariable hands a database to the process of TestOpenMySQL_ProcessInAnotherTimeZone.
const zoneVariable = "SECKILL_ZONE_TEST_DSN"

// A process in another time zone, with a DSN for that zone, sells at the same times.
func TestOpenMySQL_ProcessInAnotherTimeZone(t *testing.T) {
	if dsn := os.Getenv(zoneVariable); dsn != "" { // this is that process
		if _, offset := time.Now().Zone(); offset != 14*3600 {
			t.Fatalf("the zone is %d seconds off UTC, want 14 hours", offset)
		}
		lastID.Store(1 << 40) // ids are unique over both processes
		open := func(dsn string) *DB { return openRaw(t, dbtest.Database{Engine: "mysql", DSN: dsn}, PoolOptions{}) }
		checkTwoZones(t, open(dsn), open(dsn+"?loc=Local"))
		return
	}
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		db := openDB(t, target)
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestOpenMySQL_ProcessInAnotherTimeZone$", "-test.v")
		child.Env = append(os.Environ(), "TZ=Pacific/Kiritimati", zoneVariable+"="+target.DSN)
		if out, err := child.CombinedOutput(); err != nil || !strings.Contains(string(out), "--- PASS: TestOpenMySQL_ProcessInAnotherTimeZone") {
			t.Errorf("%v\n%s", err, out)
		}
		orders, err := NewOrders(db).Orders(t.Context(), 1, 0, 10)
		if err != nil || len(orders) == 0 {
			t.Fatalf("the other process left no order: %v", err)
		}
		for _, o := range orders {
			if apart := time.Since(o.CreatedAt); apart < -time.Minute || apart > time.Minute {
				t.Errorf("placed at %s by the other process, it is %s", o.CreatedAt, time.Now())
			}
		}
	})
}

func TestOpenMySQL_InvalidDSN(t *testing.T) {
	t.Parallel()
	for dsn, want := range map[string]string{
		"://":                    "user:password",
		"root@tcp(127.0.0.1:1)/": "names no database",
	} {
		if _, err := OpenMySQL(context.Background(), dsn, PoolOptions{}, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error that says %q", dsn, err, want)
		}
	}
}
