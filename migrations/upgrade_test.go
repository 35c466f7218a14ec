package migrations_test

import (
	"database/sql"
	"io/fs"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	"github.com/pressly/goose/v3"

	"seckill/migrations"
	"seckill/repository/repotest/dbtest"
)

// payloadTables have a column `payload`, which migration 6 changes.
var payloadTables = []string{"outbox_event", "outbox_archive", "notification"}

// Before migration 6 there are two kinds of databases: those made by the files as committed, and those made while the
// files 1 and 3 were edited. Migration 6 gives both the same tables, and keeps their rows.
func TestPayloadText_FromEitherSchema(t *testing.T) {
	tables := map[string]string{} // by engine, as the first upgrade left them
	for _, payload := range []string{"JSON", "TEXT"} {
		t.Run(payload, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
				got := upgraded(t, target, payload)
				if want, known := tables[target.Engine]; known && got != want {
					t.Errorf("tables after the upgrade:\n%s\nwant:\n%s", got, want)
				}
				tables[target.Engine] = got
				if strings.Contains(strings.ToLower(got), "json") {
					t.Errorf("tables after the upgrade:\n%s\nwant no JSON", got)
				}
			})
		})
	}
}

// upgraded migrates a database whose payloads have the given type before migration 6, and returns its tables afterwards.
func upgraded(t *testing.T, target dbtest.Database, payload string) (tables string) {
	db, err := sql.Open("mysql", target.DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	files, err := fs.Sub(migrations.FS, "mysql")
	if err != nil {
		t.Fatal(err)
	}
	steps, err := goose.NewProvider(goose.DialectMySQL, db, files)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := steps.UpTo(t.Context(), 5); err != nil {
		t.Fatal(err)
	}
	exec(t, db, `INSERT INTO outbox_event (event_id, biz_type, biz_id, version, payload, next_retry_time, created_at, updated_at)
		VALUES (1, 'ORDER_CREATED', 2, 1, '{"title": "咖啡 ☕"}', NOW(), NOW(), NOW())`)
	for _, table := range payloadTables {
		exec(t, db, "ALTER TABLE "+table+" MODIFY payload "+payload+" NOT NULL")
	}

	if _, err := steps.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	var kept string
	if err := db.QueryRow("SELECT payload FROM outbox_event").Scan(&kept); err != nil || kept != `{"title": "咖啡 ☕"}` {
		t.Errorf("payload after the upgrade: %s, %v", kept, err)
	}
	for _, table := range payloadTables {
		var name, definition string
		if err := db.QueryRow("SHOW CREATE TABLE "+table).Scan(&name, &definition); err != nil {
			t.Fatal(err)
		}
		tables += definition + "\n"
	}
	return tables
}

func exec(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.Exec(statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
