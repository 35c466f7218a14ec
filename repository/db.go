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
