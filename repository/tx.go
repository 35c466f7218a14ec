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
	"gorm.io/gorm"
	moderncsqlite "modernc.org/sqlite"

	"seckill/service"
)

// commitError is a COMMIT that was sent and not confirmed: the transaction may stand or not.
type commitError struct{ cause error }

func (e *commitError) Error() string { return "commit: " + e.cause.Error() }
func (e *commitError) Unwrap() error { return e.cause }

// ambiguous tells whether err leaves open what became of a transaction.
func ambiguous(err error) bool {
	var c *commitError
	return errors.As(err, &c)
}

// inTx runs fn in a transaction and commits it if fn returns nil. A *commitError means that the outcome is not known;
// after any other error nothing was done.
func (db *DB) inTx(ctx context.Context, fn func(tx *gorm.DB) error) error {
	tx := db.session(ctx).Begin()
	if tx.Error != nil {
		return tx.Error
	}
	done := false
	defer func() {
		if !done { // also when fn panics
			tx.Rollback()
		}
	}()
	if err := fn(tx); err != nil {
		return err
	}
	done = true
	return commit(ctx, tx)
}

// commit waits for the answer to a COMMIT until ctx ends. database/sql would wait for as long as the connection allows,
// whatever ctx says; what it still waits for here is left to it.
func commit(ctx context.Context, tx *gorm.DB) error {
	answer := make(chan error, 1)
	go func() { answer <- tx.Commit().Error }()
	var err error
	select {
	case err = <-answer:
	case <-ctx.Done():
		select {
		case err = <-answer: // both at the same moment
		default:
			err = context.Cause(ctx)
		}
	}
	if err != nil {
		return &commitError{err}
	}
	return nil
}

// change runs an idempotent transaction until it has an outcome: failures that may pass are tried again, and so is a
// commit whose answer was lost. When ctx ends first the error is ErrUnknown, or ErrUnavailable if no statement was on its
// way then: nothing can have been done. A *service.Error from fn is an outcome: the transaction is rolled back and the
// error returned.
func (db *DB) change(ctx context.Context, fn func(tx *gorm.DB) error) error {
	unknown := false
	for attempt := 0; ; attempt++ {
		sent := false
		err := db.inTx(ctx, func(tx *gorm.DB) error {
			sent = true
			return fn(tx)
		})
		var refusal *service.Error
		switch {
		case err == nil:
			return nil
		case errors.As(err, &refusal):
			return err
		}
		unknown = unknown || ambiguous(err) || sent && ctx.Err() != nil
		if (ambiguous(err) || passing(err)) && pause(ctx, attempt) {
			continue
		}
		switch {
		case unknown:
			return service.Unknown(err)
		case passing(err), ctx.Err() != nil:
			return service.Unavailable(err)
		}
		return err
	}
}

// read runs a query that changes nothing, and tries it once more if its connection turns out to be dead.
func (db *DB) read(ctx context.Context, fn func(tx *gorm.DB) error) error {
	err := fn(db.session(ctx))
	if err != nil && lostConnection(err) && ctx.Err() == nil {
		err = fn(db.session(ctx))
	}
	var refusal *service.Error
	switch {
	case err == nil, errors.As(err, &refusal):
		return err
	case errors.Is(err, gorm.ErrRecordNotFound):
		return service.ErrNotFound
	case passing(err), ctx.Err() != nil:
		return service.Unavailable(err)
	}
	return err
}

// pause waits a little longer after each attempt, with jitter so that rivals part; false when ctx ends.
func pause(ctx context.Context, attempt int) bool {
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

// passing tells whether the same transaction may succeed when it is tried again.
func passing(err error) bool {
	if lostConnection(err) {
		return true
	}
	var my *mysql.MySQLError
	if errors.As(err, &my) {
		return passingMySQL[my.Number]
	}
	var lite *moderncsqlite.Error
	if errors.As(err, &lite) {
		primary := lite.Code() & 0xff
		return primary == sqliteBusy || primary == sqliteLocked
	}
	return false
}

const (
	sqliteBusy   = 5 // https://www.sqlite.org/rescode.html#busy
	sqliteLocked = 6
)

// passingMySQL are server errors that pass: https://dev.mysql.com/doc/mysql-errors/en/server-error-reference.html
// and https://mariadb.com/kb/en/mariadb-error-codes/.
var passingMySQL = map[uint16]bool{
	1020: true, // ER_CHECKREAD: MariaDB's snapshot isolation found the row changed
	1021: true, // ER_DISK_FULL
	1040: true, // ER_CON_COUNT_ERROR: too many connections
	1053: true, // ER_SERVER_SHUTDOWN
	1114: true, // ER_RECORD_FILE_FULL
	1205: true, // ER_LOCK_WAIT_TIMEOUT
	1213: true, // ER_LOCK_DEADLOCK
	1290: true, // ER_OPTION_PREVENTS_STATEMENT: read-only after a failover
	1317: true, // ER_QUERY_INTERRUPTED
	1792: true, // ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION
	1836: true, // ER_READ_ONLY_MODE
	1927: true, // ER_CONNECTION_KILLED (MariaDB)
	1969: true, // ER_STATEMENT_TIMEOUT (MariaDB)
	3024: true, // ER_QUERY_TIMEOUT
	4031: true, // ER_CLIENT_INTERACTION_TIMEOUT
}

// lostConnection tells whether the connection failed, rather than the statement.
func lostConnection(err error) bool {
	var network net.Error
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn) || errors.Is(err, sql.ErrConnDone) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &network)
}
