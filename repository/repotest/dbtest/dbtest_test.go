package dbtest_test

import (
	"errors"
	"testing"

	"github.com/go-sql-driver/mysql"

	"seckill/repository/repotest/dbtest"
)

func TestEachGivesADatabaseOfItsOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 2 {
		dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
			if seen[db.Name] {
				t.Errorf("database %s was given twice", db.Name)
			}
			seen[db.Name] = true
			var name string
			var tables int
			err := open(t, db.DSN).QueryRowContext(t.Context(),
				"SELECT database(), (SELECT count(*) FROM information_schema.tables WHERE table_schema = database())").Scan(&name, &tables)
			if err != nil || name != db.Name || tables != 0 {
				t.Errorf("got database %q with %d tables, want %q with none (%v)", name, tables, db.Name, err)
			}
		})
	}
}

// A transaction that a test left open must not hold up the drop of its database.
func TestDatabaseGoesWithItsTest(t *testing.T) {
	t.Parallel()
	var dropped []string
	t.Run("inner", func(inner *testing.T) {
		dbtest.Each(inner, func(inner *testing.T, db dbtest.Database) {
			pool := open(t, db.DSN) // outlives the inner test
			if _, err := pool.ExecContext(inner.Context(), "CREATE TABLE held (id INT PRIMARY KEY)"); err != nil {
				inner.Fatal(err)
			}
			tx, err := pool.BeginTx(t.Context(), nil)
			if err != nil {
				inner.Fatal(err)
			}
			if _, err := tx.ExecContext(inner.Context(), "INSERT INTO held VALUES (1)"); err != nil {
				inner.Fatal(err)
			}
			dropped = append(dropped, db.DSN)
		})
	})
	for _, dsn := range dropped {
		var unknown *mysql.MySQLError
		if err := open(t, dsn).PingContext(t.Context()); !errors.As(err, &unknown) || unknown.Number != 1049 {
			t.Errorf("after its test the database answers %v, want error 1049, unknown database", err)
		}
	}
}
