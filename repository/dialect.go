package repository

import (
	"database/sql/driver"
	"fmt"
	"strconv"
	"time"

	"github.com/pressly/goose/v3"
)

// dialect is everything in which databases differ, except for the numbers of their errors (see classify). No other code
// asks which database it talks to. To add a database, add its dialect.
type dialect struct {
	name  string // what DB.Name returns, and the folder of the migrations
	goose goose.Dialect
	// migrationLock makes instances that migrate at the same time wait for each other.
	migrationLock func() ([]goose.ProviderOption, error)

	now string // the time at which the statement began
	// nowLate is the time at which a row is evaluated, after a wait for its lock.
	nowLate string
	// addMillis adds a number of milliseconds to a time; both are expressions.
	addMillis func(time, millis string) string
	// millisSince is the number of milliseconds from a time, an expression, to now.
	millisSince func(time string) string
	greatest    string // the function that returns the greater of two values

	// orSkip ends an INSERT that skips the rows that a unique index refuses; the affected rows count the others.
	orSkip func(table, key string) string
	// onConflict ends an INSERT that changes the row that its key finds there already.
	onConflict func(key, set string) string
	// useIndex names the index that a statement must use.
	useIndex func(name string) string

	shared        string // ends a SELECT that waits for transactions that are changing its rows
	exclusive     string // ends a SELECT whose rows no other transaction can change until the commit
	exclusiveFree string // is exclusive, and leaves out rows that another transaction is changing
	// multiStatement: several statements can be sent as one message, see placeInOneMessage.
	multiStatement bool
}

// nowPlus is now plus a duration, which may be negative.
func (d dialect) nowPlus(t time.Duration) string {
	return d.nowPlusMillis(strconv.FormatInt(t.Milliseconds(), 10))
}

// nowPlusMillis is now plus an expression's number of milliseconds.
func (d dialect) nowPlusMillis(expression string) string { return d.addMillis(d.now, expression) }

// lateMillis is nowLate plus a parameter's number of milliseconds.
func (d dialect) lateMillis() string { return d.addMillis(d.nowLate, "?") }

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
