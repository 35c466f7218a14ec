package repository

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"time"

	"gorm.io/gorm"
)

// connection is a connection that one goroutine has to itself; Close gives it back to the pool.
type connection interface {
	gorm.ConnPool
	Raw(func(driverConn any) error) error
	Close() error
}

var _ connection = (*sql.Conn)(nil)

// onConnection lets fn have a connection, on which it may begin a transaction and commit it. What fn leaves open, by an
// error or a panic, is rolled back; where that is not certain, the connection is not used again.
func (db *DB) onConnection(ctx context.Context, fn func(connection) error) error {
	conn, err := db.connect(ctx)
	if err != nil {
		return err
	}
	done := false
	defer func() {
		if !done {
			rollBack(conn)
		}
		_ = conn.Close()
	}()
	if err := fn(conn); err != nil {
		if ambiguous(err) { // of a COMMIT: there may be nothing to roll back, and an answer still to come
			done = true
			discard(conn)
		}
		return err
	}
	done = true
	return nil
}

// rollBack leaves no transaction open on a connection that is given back.
func rollBack(conn connection) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if _, err := conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		discard(conn)
	}
}

// discard keeps a connection from being used again.
func discard(conn connection) {
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
}
