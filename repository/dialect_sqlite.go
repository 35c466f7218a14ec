package repository

import (
	"database/sql"
	"fmt"
	"log/slog"

	sqlite "github.com/libtnb/sqlite"
	"github.com/pressly/goose/v3"
)

var sqliteDialect = dialect{
	name:          "sqlite",
	goose:         goose.DialectSQLite3,
	migrationLock: func() ([]goose.ProviderOption, error) { return nil, nil }, // one process uses the file

	now:         "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
	nowAtRow:    "CAST(unixepoch('subsec') * 1000 AS INTEGER)", // no transaction waits for a row
	addMillis:   func(time, millis string) string { return "(" + time + " + " + millis + ")" },
	millisSince: func(time string) string { return "CAST(unixepoch('subsec') * 1000 AS INTEGER) - " + time },
	greatest:    "MAX",

	onConflictDoNothing: func(string, string) string { return " ON CONFLICT DO NOTHING" },
	onConflict:          func(key, set string) string { return " ON CONFLICT (" + key + ") DO UPDATE SET " + set },
	useIndex:            func(string) string { return "" },
}

// OpenSQLite opens or creates the database file of the embedded mode. All callers share one connection, since SQLite has
// one writer: Go's connection pool serves them in the order in which they come, SQLite's busy handler does not.
func OpenSQLite(path string, log *slog.Logger) (*DB, error) {
	dsn := "file:" + path + "?_txlock=immediate&_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)" +
		"&_pragma=synchronous(FULL)&_time_integer_format=unix_milli&_inttotime=1"
	pool, err := sql.Open(sqlite.DriverName, dsn)
	if err != nil {
		return nil, fmt.Errorf("sqlite %s: %w", path, err)
	}
	pool.SetMaxOpenConns(1)
	return open(sqlite.New(sqlite.Config{Conn: pool}), pool, sqliteDialect, log)
}
