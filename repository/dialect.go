package repository

import (
	"database/sql/driver"
	"fmt"
	"strconv"
	"time"

	"github.com/pressly/goose/v3"
)

// dialect is the SQL in which databases differ. Databases also differ in these places:
//   - the migrations: a folder in migrations, named after the dialect;
//   - how a database is opened, and the settings of its sessions: OpenMySQL (see serverKind for MariaDB), OpenSQLite;
//   - the numbers of its errors: mysqlErrors and sqliteErrors;
//   - the tests: an engine in repotest/dbtest.
//
// No other code asks which database it talks to. The fragments of SQL that a statement appends begin with a space.
type dialect struct {
	name  string // what DB.Name returns, and the folder of the migrations
	goose goose.Dialect
	// migrationLock makes instances that migrate at the same time wait for each other.
	migrationLock func() ([]goose.ProviderOption, error)

	now string // the time at which the statement began
	// nowAtRow is the time at which a row is evaluated, after a wait for its lock.
	nowAtRow string
	// addMillis adds a number of milliseconds to a time; both are expressions.
	addMillis func(time, millis string) string
	// millisSince is the number of milliseconds from a time, an expression, to now.
	millisSince func(time string) string
	greatest    string // the function that returns the greater of two values

	// onConflictDoNothing ends an INSERT that skips the rows that a unique index refuses; the affected rows count the others.
	onConflictDoNothing func(table, key string) string
	// onConflict ends an INSERT that updates the row if its key exists already.
	onConflict func(key, set string) string
	// useIndex names the index that a statement must use.
	useIndex func(name string) string

	// These end a SELECT. All are "" for a database with one writer.
	forShare            string // waits for transactions that are changing its rows
	forUpdate           string // no other transaction can change its rows until the commit
	forUpdateSkipLocked string // as forUpdate, and leaves out rows that another transaction is changing
	// multiStatement: several statements can be sent as one message, see placeInOneMessage.
	multiStatement bool
}

// nowPlus is now plus a duration, which may be negative.
func (d dialect) nowPlus(t time.Duration) string {
	return d.nowPlusMillis(strconv.FormatInt(t.Milliseconds(), 10))
}

// nowPlusMillis is now plus an expression's number of milliseconds.
func (d dialect) nowPlusMillis(expression string) string { return d.addMillis(d.now, expression) }

// nowAtRowPlusMillis is nowAtRow plus a parameter's number of milliseconds.
func (d dialect) nowAtRowPlusMillis() string { return d.addMillis(d.nowAtRow, "?") }

// dbTime reads the time that an expression returns: SQLite returns a number there.
type dbTime struct{ time.Time }

// Scan reads a DATETIME or Unix milliseconds.
func (t *dbTime) Scan(v any) error {
	switch v := v.(type) {
	case time.Time:
		t.Time = v.UTC()
	case int64:
		t.Time = time.UnixMilli(v).UTC()
	default:
		return fmt.Errorf("cannot read a time from %T", v)
	}
	return nil
}

// Value writes the time as the driver does.
func (t dbTime) Value() (driver.Value, error) { return t.Time, nil }

// orZero is the time, or the zero time for NULL.
func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// millis rounds a time down to what a column stores.
func millis(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }
