package repository

import (
	"database/sql/driver"
	"fmt"
	"strconv"
	"time"

	"gorm.io/gorm"
)

// dialect is where SQLite and MySQL differ in what the shop says to them.
type dialect struct {
	name string
	now  string // the time of the statement
	// nowLate is the time at which the row is evaluated, after a wait for its lock.
	nowLate string
	// orSkip ends an INSERT whose rows are skipped where a unique index refuses them; affected rows then count the
	// others. MySQL's INSERT IGNORE will not do: it also lets bad data through.
	orSkip func(table, key string) string
	// shared ends a SELECT that waits for whoever is changing its rows.
	shared string
	// exclusive ends a SELECT whose rows nobody else may change until commit.
	exclusive string
	// exclusiveFree is the same, and leaves out rows that somebody else is changing.
	exclusiveFree string
	// time is a time as a literal, to the millisecond.
	time func(time.Time) string
	// message: a transaction may be sent as one message of several statements, see commitMessage.
	message bool
}

// dialectOf is the dialect that tx speaks.
func dialectOf(tx *gorm.DB) dialect {
	if tx.Name() == sqliteDialect.name {
		return sqliteDialect
	}
	return mysqlDialect
}

var mysqlDialect = dialect{
	name:      "mysql",
	now:       "UTC_TIMESTAMP(3)",
	nowLate:   "SYSDATE(3)", // the session's time zone is UTC
	orSkip:    func(table, key string) string { return " ON DUPLICATE KEY UPDATE " + key + " = " + table + "." + key },
	shared:    " LOCK IN SHARE MODE", // FOR SHARE is not known to MariaDB
	exclusive: " FOR UPDATE",

	exclusiveFree: " FOR UPDATE SKIP LOCKED",

	time:    func(t time.Time) string { return t.UTC().Format("'2006-01-02 15:04:05.000'") },
	message: true,
}

var sqliteDialect = dialect{
	name:    "sqlite",
	now:     "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
	nowLate: "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
	orSkip:  func(string, string) string { return " ON CONFLICT DO NOTHING" },
	time:    func(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) },
}

// dbTime reads a time that an expression gave, for which SQLite does not know that it is one.
type dbTime struct{ time.Time }

// Scan takes a DATETIME or Unix milliseconds.
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

// millis rounds to what a column holds.
func millis(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }
