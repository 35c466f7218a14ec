package repository

import (
	"context"
	"database/sql"
	"regexp"
	"sync"
	"testing"
	"time"

	"gorm.io/gorm"

	"seckill/repository/repotest/dbtest"
	"seckill/service/outbox"
)

// No statement of the outbox contains a time of the application, so a wrong application clock does not matter: the
// database decides what is due, leased or old. A time of the application would show as a date or as a number of
// milliseconds near now.
func TestOutbox_UsesDatabaseClockOnly(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		db, o := openOutbox(t, target)
		appendTest(t, db, sequence(1, 20)...)
		recorded := recordStatements(db)
		ctx := t.Context()
		first := claim(t, o, outbox.Claim{Limit: 8, Lease: time.Minute})
		must := func(what string, err error) {
			t.Helper()
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		ids := eventIDs(first)
		must("sent", o.MarkSent(ctx, ids[:4]))
		must("failed", o.MarkFailed(ctx, first.Token, []outbox.Failure{{ID: ids[4], Delay: time.Minute}, {ID: ids[5], GiveUp: true}}))
		must("release", o.Release(ctx, first.Token, ids[6:]))
		_, err := o.Claim(ctx, outbox.Claim{Limit: 5, Lease: time.Minute, Overdue: time.Minute, MinAttempts: 1})
		must("rescue", err)
		_, err = o.Health(ctx, 10*time.Minute)
		must("health", err)
		_, err = o.Unconsumed(ctx, outbox.Reconcile{Consumer: "points", After: time.Minute, Within: time.Hour}, 10)
		must("reconcile", err)
		_, err = o.Retry(ctx, ids[5:6])
		must("retry", err)
		_, err = o.Purge(ctx, time.Minute, 10, true)
		must("purge", err)
		// Negative control: a statement with a time of the application is recorded.
		must("control", db.gorm.Exec("UPDATE outbox_event SET updated_at = ? WHERE event_id = 1", time.Now()).Error)
		recorded.mu.Lock()
		defer recorded.mu.Unlock()
		if n := len(recorded.suspects); n == 0 {
			t.Error("a time of the application was not noticed")
		} else {
			recorded.suspects = recorded.suspects[:n-1]
		}
		if recorded.count < 10 {
			t.Fatalf("%d statements were recorded, which cannot be all", recorded.count)
		}
		for _, s := range recorded.suspects {
			t.Errorf("a time of the application: %s", s)
		}
	})
}

// statements counts the statements of a DB, and keeps those that contain a time.
type statements struct {
	mu       sync.Mutex
	count    int
	suspects []string
}

// recordStatements makes the database record its statements from now on.
func recordStatements(db *DB) *statements {
	s := &statements{}
	pool := &recordingPool{recordingConn{db.sql, s}, db.sql}
	db.gorm.ConnPool, db.gorm.Statement.ConnPool = pool, pool
	return s
}

// aTime is a date, or milliseconds since 1970 in this century's first half.
var aTime = regexp.MustCompile(`\b20\d\d-\d\d-\d\d|\b1[6-9]\d{11}\b|\b2[0-4]\d{11}\b`)

func (s *statements) record(query string, args []any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	suspicious := aTime.MatchString(query)
	for _, arg := range args {
		switch v := arg.(type) {
		case time.Time, *time.Time, dbTime:
			suspicious = true
		case string:
			suspicious = suspicious || aTime.MatchString(v)
		}
	}
	if suspicious {
		s.suspects = append(s.suspects, query)
	}
}

// recordingConn records the statements of a connection.
type recordingConn struct {
	gorm.ConnPool
	statements *statements
}

func (c recordingConn) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	c.statements.record(query, args)
	return c.ConnPool.ExecContext(ctx, query, args...)
}

func (c recordingConn) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	c.statements.record(query, args)
	return c.ConnPool.QueryContext(ctx, query, args...)
}

func (c recordingConn) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	c.statements.record(query, args)
	return c.ConnPool.QueryRowContext(ctx, query, args...)
}

// recordingPool is a pool that also records the statements of its transactions.
type recordingPool struct {
	recordingConn
	db *sql.DB
}

func (p *recordingPool) GetDBConn() (*sql.DB, error) { return p.db, nil }

func (p *recordingPool) BeginTx(ctx context.Context, opts *sql.TxOptions) (gorm.ConnPool, error) {
	tx, err := p.db.BeginTx(ctx, opts)
	if err != nil {
		return nil, err
	}
	return &recordingTx{recordingConn{tx, p.statements}, tx}, nil
}

type recordingTx struct {
	recordingConn
	tx *sql.Tx
}

func (t *recordingTx) Commit() error   { return t.tx.Commit() }
func (t *recordingTx) Rollback() error { return t.tx.Rollback() }
