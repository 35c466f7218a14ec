package repository

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"
	"sync"
	"testing"

	"gorm.io/gorm"
)

// wire is between a DB and its connections. Tests observe statements, change them, or make them fail.
//
// A statement is identified by its text; "BEGIN" and "COMMIT" stand for those that gorm does not write. A message of
// several statements passes as a whole.
type wire struct {
	mu      sync.Mutex
	seen    map[string]int
	rewrite func(query string) string // "" leaves a statement out, and reports success
	before  func(query string) error  // an error: the statement is not sent
	after   func(query string, err error) error
}

// tap puts a wire into db. The audit does not use it.
func tap(t *testing.T, db *DB) *wire {
	t.Helper()
	w := &wire{seen: map[string]int{}}
	pool := &wiredPool{wired{w, db.sql}, db.sql}
	db.gorm.ConnPool, db.gorm.Statement.ConnPool = pool, pool
	return w
}

// set changes what the wire does, at any time.
func (w *wire) set(change func(w *wire)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(w)
}

// count returns how many statements that contain text have passed.
func (w *wire) count(text string) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for query, times := range w.seen {
		if strings.Contains(query, text) {
			n += times
		}
	}
	return n
}

// transactions returns how many transactions have begun.
func (w *wire) transactions() int { return w.count("BEGIN") }

// pass carries one statement.
func (w *wire) pass(query string, send func(query string) error) error {
	w.mu.Lock()
	w.seen[query]++
	rewrite, before, after := w.rewrite, w.before, w.after
	w.mu.Unlock()
	if rewrite != nil {
		query = rewrite(query)
	}
	if before != nil {
		if err := before(query); err != nil {
			return err
		}
	}
	var err error
	if query != "" {
		err = send(query)
	}
	if after != nil {
		return after(query, err)
	}
	return err
}

// wired is a gorm.ConnPool on a wire.
type wired struct {
	wire *wire
	conn gorm.ConnPool
}

func (p wired) PrepareContext(ctx context.Context, query string) (*sql.Stmt, error) {
	return p.conn.PrepareContext(ctx, query)
}

func (p wired) ExecContext(ctx context.Context, query string, args ...any) (result sql.Result, err error) {
	result = driver.RowsAffected(1) // of a statement that was left out
	err = p.wire.pass(query, func(query string) error {
		result, err = p.conn.ExecContext(ctx, query, args...)
		return err
	})
	if err != nil {
		return driver.RowsAffected(0), err
	}
	return result, nil
}

func (p wired) QueryContext(ctx context.Context, query string, args ...any) (rows *sql.Rows, err error) {
	err = p.wire.pass(query, func(query string) error {
		rows, err = p.conn.QueryContext(ctx, query, args...)
		return err
	})
	if err != nil && rows != nil {
		_ = rows.Close()
	}
	return rows, err
}

func (p wired) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	return p.conn.QueryRowContext(ctx, query, args...)
}

type wiredPool struct {
	wired
	db *sql.DB
}

// GetDBConn returns the pool to gorm.
func (p *wiredPool) GetDBConn() (*sql.DB, error) { return p.db, nil }

// BeginTx implements gorm.ConnPoolBeginner.
func (p *wiredPool) BeginTx(ctx context.Context, opts *sql.TxOptions) (gorm.ConnPool, error) {
	var tx *sql.Tx
	err := p.wire.pass("BEGIN", func(string) (err error) {
		tx, err = p.db.BeginTx(ctx, opts)
		return err
	})
	if err != nil {
		if tx != nil {
			_ = tx.Rollback()
		}
		return nil, err
	}
	return &wiredTx{wired{p.wire, tx}, tx}, nil
}

type wiredTx struct {
	wired
	tx *sql.Tx
}

// Commit rolls back if the wire did not let it be sent, as the server does when a connection is lost.
func (p *wiredTx) Commit() error {
	sent := false
	err := p.wire.pass("COMMIT", func(string) error {
		sent = true
		return p.tx.Commit()
	})
	if !sent {
		_ = p.tx.Rollback()
	}
	return err
}

func (p *wiredTx) Rollback() error { return p.tx.Rollback() }
