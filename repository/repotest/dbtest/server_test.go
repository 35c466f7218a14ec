package dbtest_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"time"

	"seckill/repository/repotest/dbtest"
)

// A server has to be durable as the shop's promises need it, and each fault has to take effect: a drill whose
// server was never really gone passes whatever the code does.
func TestServerFaults(t *testing.T) {
	t.Parallel()
	dbtest.EachServer(t, func(t *testing.T, s *dbtest.Server) {
		db := s.Create()
		pool := open(t, db.DSN)
		for name, want := range map[string]string{
			"innodb_flush_log_at_trx_commit": "1", "sync_binlog": "1", "log_bin": "1", "binlog_format": "ROW",
		} {
			var got string
			if err := pool.QueryRowContext(t.Context(), "SELECT @@global."+name).Scan(&got); err != nil || got != want {
				t.Errorf("%s is %q, want %q (%v)", name, got, want, err)
			}
		}
		for _, statement := range []string{"CREATE TABLE kept (id INT PRIMARY KEY)", "INSERT INTO kept VALUES (7)"} {
			if _, err := pool.ExecContext(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}

		s.Pause()
		if err := ask(pool, time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a paused server: got %v, want no answer within the deadline", err)
		}
		s.Resume()
		if err := ask(pool, 30*time.Second); err != nil {
			t.Errorf("after resuming: %v", err)
		}

		s.Kill()
		if err := ask(pool, 30*time.Second); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a killed server: got %v, want a refused connection", err)
		}
		s.Restart()
		if err := ask(pool, 30*time.Second); err != nil {
			t.Errorf("after restarting: %v", err)
		}
	})
}

// ask looks for the row that was committed before the faults.
func ask(pool *sql.DB, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var id int
	return pool.QueryRowContext(ctx, "SELECT id FROM kept WHERE id = 7").Scan(&id)
}

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	pool, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	return pool
}
