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

// No time of the application gets into a statement of the outbox, so its clock cannot matter, however wrong it is: what
// is due, leased, old or late is the database's word. A clock that was wrong by ten minutes would show as a time or as
// a number of milliseconds that is near now.
func TestOutboxKnowsNoClockButTheDatabases(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		db, o := openOutbox(t, target)
		appendTest(t, db, sequence(1, 20)...)
		heard := eavesdrop(db)
		ctx := t.Context()
		first := claim(t, o, outbox.Claim{Limit: 8, Lease: time.Minute})
		must := func(what string, err error) {
			t.Helper()
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		ids := eventIDs(first)
		must("sent", o.Sent(ctx, ids[:4]))
		must("failed", o.Failed(ctx, first.Token, []outbox.Failure{{ID: ids[4], Delay: time.Minute}, {ID: ids[5], GiveUp: true}}))
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
		// Negative control: a statement that carries one is heard.
		must("control", db.gorm.Exec("UPDATE outbox_event SET updated_at = ? WHERE event_id = 1", time.Now()).Error)
		heard.mu.Lock()
		defer heard.mu.Unlock()
		if n := len(heard.suspects); n == 0 {
			t.Error("a time of the application was not noticed")
		} else {
			heard.suspects = heard.suspects[:n-1]
		}
		if heard.statements < 10 {
			t.Fatalf("%d statements were heard, which cannot be all", heard.statements)
		}
		for _, s := range heard.suspects {
			t.Errorf("a time of the application: %s", s)
		}
	})
}

// ear hears every statement of a DB, and keeps those that carry a time.
type ear struct {
	gorm.ConnPool
	mu         *sync.Mutex
	statements *int
	suspects   *[]string
}

type hearing struct {
	mu         sync.Mutex
	statements int
	suspects   []string
}

func eavesdrop(db *DB) *hearing {
	h := &hearing{}
	pool := &eared{ear{db.sql, &h.mu, &h.statements, &h.suspects}, db.sql}
	db.gorm.ConnPool, db.gorm.Statement.ConnPool = pool, pool
	return h
}

// aTime is a date, or milliseconds since 1970 in this century's first half.
var aTime = regexp.MustCompile(`\b20\d\d-\d\d-\d\d|\b1[6-9]\d{11}\b|\b2[0-4]\d{11}\b`)

func (e ear) note(query string, args []any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	*e.statements++
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
		*e.suspects = append(*e.suspects, query)
	}
}

func (e ear) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	e.note(query, args)
	return e.ConnPool.ExecContext(ctx, query, args...)
}

func (e ear) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	e.note(query, args)
	return e.ConnPool.QueryContext(ctx, query, args...)
}

func (e ear) QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row {
	e.note(query, args)
	return e.ConnPool.QueryRowContext(ctx, query, args...)
}

// eared is the pool, whose transactions are heard as well.
type eared struct {
	ear
	db *sql.DB
}

func (p *eared) GetDBConn() (*sql.DB, error) { return p.db, nil }

func (p *eared) BeginTx(ctx context.Context, opts *sql.TxOptions) (gorm.ConnPool, error) {
	tx, err := p.db.BeginTx(ctx, opts)
	if err != nil {
		return nil, err
	}
	inside := p.ear
	inside.ConnPool = tx
	return &earedTx{inside, tx}, nil
}

type earedTx struct {
	ear
	tx *sql.Tx
}

func (t *earedTx) Commit() error   { return t.tx.Commit() }
func (t *earedTx) Rollback() error { return t.tx.Rollback() }
