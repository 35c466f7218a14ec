// Package repository keeps the shop in a database: MySQL, MariaDB, or SQLite for the embedded mode. Rows and SQL stay in
// this package; domain types leave it. The conditions of its statements and the unique indexes are the guard of the
// shop: they decide, whatever the checks before them said.
package repository

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"

	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"seckill/service"
)

// DB is an open database. It is safe for use by many goroutines; close it after its last use.
type DB struct {
	gorm    *gorm.DB
	sql     *sql.DB
	dialect dialect
	version string
	log     *slog.Logger
	// maxOrders is how many orders fit into one message to the server.
	maxOrders int
	// longQueries has connections without a read timeout; nil if db itself has none.
	longQueries *DB
}

func open(d gorm.Dialector, pool *sql.DB, own dialect, log *slog.Logger) (*DB, error) {
	if err := checkGuard(log); err != nil {
		return nil, errors.Join(err, pool.Close())
	}
	db, err := gorm.Open(d, &gorm.Config{
		SkipDefaultTransaction: true, // only inTx begins transactions
		DisableAutomaticPing:   true,
		Logger:                 logger.Discard, // errors are returned, and logged once with their context
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open database: %w", err), pool.Close())
	}
	return &DB{gorm: db, sql: pool, dialect: own, log: log, maxOrders: math.MaxInt}, nil
}

// forLongQueries is the database for queries that may take minutes, such as an audit: only their context bounds them.
func (db *DB) forLongQueries() *DB {
	if db.longQueries != nil {
		return db.longQueries
	}
	return db
}

// Ping checks that the server answers.
func (db *DB) Ping(ctx context.Context) error { return db.sql.PingContext(ctx) }

// Close closes all connections.
func (db *DB) Close() error {
	if db.longQueries != nil {
		return errors.Join(db.longQueries.Close(), db.sql.Close())
	}
	return db.sql.Close()
}

// Stats returns how the connections are used.
func (db *DB) Stats() sql.DBStats { return db.sql.Stats() }

// Name is the kind of database, "mysql" (also for MariaDB) or "sqlite".
func (db *DB) Name() string { return db.dialect.name }

// Version is the server's version as the server reports it; empty for SQLite.
func (db *DB) Version() string { return db.version }

// session is a gorm handle bound to ctx.
func (db *DB) session(ctx context.Context) *gorm.DB { return db.gorm.WithContext(ctx) }

// insertInto is an INSERT of so many rows, with a placeholder for every column.
func insertInto(table string, rows int, columns ...string) string {
	row := "(?" + strings.Repeat(",?", len(columns)-1) + ")"
	return "INSERT INTO " + table + " (" + strings.Join(columns, ", ") + ") VALUES " + row + strings.Repeat(","+row, rows-1)
}

// inTx runs fn in a transaction and commits it if fn returns nil. An error that wraps errUnconfirmed leaves the outcome
// open; after any other error nothing was done.
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
	return commitTx(ctx, tx)
}

// commitTx waits for the answer to COMMIT until ctx ends. database/sql would ignore ctx and wait as long as the connection
// allows; it still does so in the background.
func commitTx(ctx context.Context, tx *gorm.DB) error {
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
		return fmt.Errorf("%w: %w", errUnconfirmed, err)
	}
	return nil
}

// inTxUntilKnown runs an idempotent transaction until its outcome is known. It repeats the transaction after a transient
// failure, and after a COMMIT that was not confirmed. If ctx ends first, the error is ErrUnknown, or ErrUnavailable if certainly nothing
// was done. A *service.Error from fn is an outcome: the transaction is rolled back and the error returned.
func (db *DB) inTxUntilKnown(ctx context.Context, fn func(tx *gorm.DB) error) error {
	mayBeCommitted := false
	err := retry(ctx, 0, func() error {
		began := false
		err := db.inTx(ctx, func(tx *gorm.DB) error {
			began = true
			return fn(tx)
		})
		mayBeCommitted = mayBeCommitted || classify(err) == unknown || began && ctx.Err() != nil
		return err
	})
	if _, refusal := errors.AsType[*service.Error](err); err != nil && mayBeCommitted && !refusal {
		return service.Unknown(err)
	}
	return toServiceError(ctx, err)
}

// read runs a query. It repeats the query once after a transient error, such as a lost connection.
func (db *DB) read(ctx context.Context, fn func(tx *gorm.DB) error) error {
	return toServiceError(ctx, retry(ctx, 2, func() error { return fn(db.session(ctx)) }))
}

// toServiceError translates an error of the database into one of the service, where there is one.
func toServiceError(ctx context.Context, err error) error {
	_, refusal := errors.AsType[*service.Error](err)
	switch {
	case err == nil, refusal:
		return err
	case errors.Is(err, gorm.ErrRecordNotFound):
		return service.ErrNotFound
	case classify(err) == transient, ctx.Err() != nil:
		return service.Unavailable(err)
	}
	return err
}
