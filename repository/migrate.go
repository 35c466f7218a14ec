package repository

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"
	gooselock "github.com/pressly/goose/v3/lock"

	"seckill/migrations"
)

// ErrNotMigrated is returned for a database whose schema is not that of this program.
var ErrNotMigrated = errors.New("the database is not migrated; run: seckill migrate up")

// Migration is one step of the schema.
type Migration struct {
	Version   int64
	Name      string
	AppliedAt time.Time // zero if pending
}

// goose is the library at work on this database. On MySQL a row of its own keeps instances that migrate at the same
// time apart; an embedded database has one user.
func (db *DB) goose() (*goose.Provider, error) {
	files, err := fs.Sub(migrations.FS, db.dialect.name)
	if err != nil {
		return nil, err
	}
	if db.dialect.name == sqliteDialect.name {
		return goose.NewProvider(goose.DialectSQLite3, db.sql, files)
	}
	locker, err := gooselock.NewMySQLTableLocker(gooselock.WithTableLockTimeout(200*time.Millisecond, 600))
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectMySQL, db.patient().sql, files, goose.WithLocker(locker))
}

// Migrate brings the schema up to date and returns the steps that it took. Several instances may call it at once.
func (db *DB) Migrate(ctx context.Context) ([]Migration, error) {
	p, err := db.goose()
	if err != nil {
		return nil, err
	}
	results, err := p.Up(ctx)
	var done []Migration
	for _, r := range results {
		done = append(done, Migration{Version: r.Source.Version, Name: r.Source.Path, AppliedAt: time.Now().UTC()})
	}
	if err != nil {
		return done, fmt.Errorf("migrate: %w", err)
	}
	return done, nil
}

// Migrations lists all steps, oldest first.
func (db *DB) Migrations(ctx context.Context) ([]Migration, error) {
	p, err := db.goose()
	if err != nil {
		return nil, err
	}
	status, err := p.Status(ctx)
	if err != nil {
		return nil, fmt.Errorf("migration status: %w", err)
	}
	var all []Migration
	for _, s := range status {
		all = append(all, Migration{Version: s.Source.Version, Name: s.Source.Path, AppliedAt: s.AppliedAt})
	}
	return all, nil
}

// Migrated returns nil if the schema is up to date, ErrNotMigrated if it is not.
func (db *DB) Migrated(ctx context.Context) error {
	p, err := db.goose()
	if err != nil {
		return err
	}
	pending, err := p.HasPending(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("migration status: %w", err)
	case pending:
		return ErrNotMigrated
	}
	return nil
}
