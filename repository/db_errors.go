package repository

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"time"

	"github.com/go-sql-driver/mysql"
	moderncsqlite "modernc.org/sqlite"
)

// failure is what an error means for the transaction in which it happened.
type failure int

const (
	permanent failure = iota // the same transaction would fail again
	transient                // nothing was done; the same transaction may succeed later
	unknown                  // COMMIT was sent and not confirmed: the transaction may be durable or not
)

// errUnconfirmed wraps every error of COMMIT.
var errUnconfirmed = errors.New("COMMIT was not confirmed")

// mysqlErrors classifies the errors of MySQL and MariaDB; those that are not listed are permanent. See
// https://dev.mysql.com/doc/mysql-errors/en/server-error-reference.html and https://mariadb.com/kb/en/mariadb-error-codes/.
var mysqlErrors = map[uint16]failure{
	1020: transient, // ER_CHECKREAD: MariaDB's snapshot isolation found the row changed
	1021: transient, // ER_DISK_FULL
	1040: transient, // ER_CON_COUNT_ERROR: too many connections
	1053: transient, // ER_SERVER_SHUTDOWN
	1114: transient, // ER_RECORD_FILE_FULL
	1205: transient, // ER_LOCK_WAIT_TIMEOUT
	1213: transient, // ER_LOCK_DEADLOCK
	1290: transient, // ER_OPTION_PREVENTS_STATEMENT: read-only after a failover
	1317: transient, // ER_QUERY_INTERRUPTED
	1792: transient, // ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION
	1836: transient, // ER_READ_ONLY_MODE
	1927: transient, // ER_CONNECTION_KILLED (MariaDB)
	1969: transient, // ER_STATEMENT_TIMEOUT (MariaDB)
	3024: transient, // ER_QUERY_TIMEOUT
	4031: transient, // ER_CLIENT_INTERACTION_TIMEOUT
}

// sqliteErrors classifies the primary result codes of SQLite: https://www.sqlite.org/rescode.html.
var sqliteErrors = map[int]failure{
	5: transient, // SQLITE_BUSY
	6: transient, // SQLITE_LOCKED
}

// classify returns what err means for its transaction. nil is permanent: there is nothing to repeat.
func classify(err error) failure {
	if errors.Is(err, errUnconfirmed) {
		return unknown
	}
	if lostConnection(err) {
		return transient
	}
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return mysqlErrors[e.Number]
	}
	if e, ok := errors.AsType[*moderncsqlite.Error](err); ok {
		return sqliteErrors[e.Code()&0xff]
	}
	return permanent
}

// lostConnection reports whether the connection failed, not the statement.
func lostConnection(err error) bool {
	_, network := errors.AsType[net.Error](err)
	return network || errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn) ||
		errors.Is(err, sql.ErrConnDone) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// retry calls an idempotent fn until it succeeds, fails permanently, was called attempts times (0: no bound), or ctx
// ends. It returns fn's last error.
func retry(ctx context.Context, attempts int, fn func() error) error {
	for attempt := 0; ; attempt++ {
		err := fn()
		class := classify(err)
		retriable := class == transient || class == unknown
		if !retriable || attempt+1 == attempts || !backOff(ctx, attempt) {
			return err
		}
	}
}

// backOff waits after a failed attempt: about 1 ms after attempt 0, twice as long after each further one, at most 200 ms.
// Jitter separates competing transactions. It returns false if ctx ends.
func backOff(ctx context.Context, attempt int) bool {
	if ctx.Err() != nil {
		return false
	}
	longest := min(time.Millisecond<<min(attempt, 8), 200*time.Millisecond)
	timer := time.NewTimer(longest/2 + rand.N(longest/2+1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
