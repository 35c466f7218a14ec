// Package dbtest gives a test a database of its own on every real server that the shop is tested on.
//
// The servers that all tests share are named by SECKILL_TEST_MARIADB_DSN and SECKILL_TEST_MYSQL_DSN, which
// `go run ./cmd/test` sets. Without them a test skips and says so; with SECKILL_TEST_REQUIRED=1 it fails.
package dbtest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seckill/repository/repotest/dbserver"
)

// SQLite is the Engine of a Database that All gives for the embedded mode.
const SQLite = "sqlite"

// Database is a fresh, empty database. It is dropped when its test ends.
type Database struct {
	Engine string // "mariadb", "mysql" or "sqlite"
	DSN    string // go-sql-driver format over TCP; for SQLite the file's path
	Addr   string // host:port of the server; empty for SQLite
	Name   string // name of the database; empty for SQLite
}

// Each runs test as a subtest on every real engine, one after the other.
func Each(t *testing.T, test func(t *testing.T, db Database)) {
	t.Helper()
	for _, engine := range dbserver.Engines() {
		t.Run(string(engine), func(t *testing.T) { test(t, shared(t, engine)) })
	}
}

// All runs test as Each does, and on SQLite before. The file does not exist yet.
func All(t *testing.T, test func(t *testing.T, db Database)) {
	t.Helper()
	t.Run(SQLite, func(t *testing.T) {
		test(t, Database{Engine: SQLite, DSN: filepath.Join(t.TempDir(), "seckill.db")})
	})
	Each(t, test)
}

func shared(t *testing.T, engine dbserver.Engine) Database {
	t.Helper()
	dsn := os.Getenv(dbserver.Variable(engine))
	if dsn == "" {
		unavailable(t, dbserver.Variable(engine)+" is not set")
	}
	db := create(t, string(engine), dsn)
	t.Cleanup(func() {
		if err := drop(dsn, db.Name); err != nil {
			t.Errorf("drop database %s: %v", db.Name, err)
		}
	})
	return db
}

// unavailable skips the test, or fails it where servers are required.
func unavailable(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("SECKILL_TEST_REQUIRED") == "1" {
		t.Fatalf("%s, and SECKILL_TEST_REQUIRED=1 demands it", why)
	}
	t.Skipf("%s: run this test by `go run ./cmd/test`, which provides the servers", why)
}

// create makes a database on the server of dsn.
func create(t *testing.T, engine, dsn string) Database {
	t.Helper()
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatalf("DSN of %s: %v", engine, err)
	}
	config.DBName = ""
	admin, err := sql.Open("mysql", config.FormatDSN())
	if err != nil {
		t.Fatalf("DSN of %s: %v", engine, err)
	}
	defer admin.Close()
	name := databaseName(t.Name())
	if _, err := admin.ExecContext(t.Context(), "CREATE DATABASE "+name+" CHARACTER SET utf8mb4"); err != nil {
		t.Fatalf("create a database on %s: %v", engine, err)
	}
	config.DBName = name
	return Database{Engine: engine, DSN: config.FormatDSN(), Addr: config.Addr, Name: name}
}

// drop ends whatever still uses the database before it drops it: a transaction that a test has left behind,
// on a connection whose other end is gone, would hold the drop up until the server notices.
func drop(dsn, name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	admin, err := sql.Open("mysql", dsn)
	if err != nil {
		return err
	}
	defer admin.Close()
	left, err := connections(ctx, admin, name)
	if err != nil {
		return err
	}
	for _, id := range left {
		_, _ = admin.ExecContext(ctx, fmt.Sprintf("KILL %d", id)) // it may have gone by itself
	}
	_, err = admin.ExecContext(ctx, "DROP DATABASE "+name)
	return err
}

func connections(ctx context.Context, admin *sql.DB, database string) (ids []int64, err error) {
	rows, err := admin.QueryContext(ctx, "SELECT id FROM information_schema.processlist WHERE db = ?", database)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

var notInName = regexp.MustCompile(`[^a-z0-9]+`)

// databaseName returns a name that tells its test and that no other test has. Names end at 64 characters.
func databaseName(test string) string {
	test = notInName.ReplaceAllString(strings.ToLower(test), "_")
	return "t_" + test[:min(len(test), 40)] + "_" + strings.ToLower(rand.Text()[:12])
}
