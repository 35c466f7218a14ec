package repository

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"

	"seckill/migrations"
)

// ErrNotMigrated is returned for a database whose schema is not the one that this program needs.
var ErrNotMigrated = errors.New("the database is not migrated; run: seckill migrate up")

// Migration is one versioned change of the schema.
type Migration struct {
	Version   int64
	Name      string
	AppliedAt time.Time // zero if pending
}

// goose returns the migration library for this database.
func (db *DB) goose() (*goose.Provider, error) {
	files, err := fs.Sub(migrations.FS, db.dialect.name)
	if err != nil {
		return nil, err
	}
	options, err := db.dialect.migrationLock()
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(db.dialect.goose, db.forLongQueries().sql, files, options...)
}

// Migrate applies all pending migrations and returns them. Several instances may call it at the same time.
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

// Migrations lists all migrations, oldest first.
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

// Migrated returns nil if no migration is pending, else ErrNotMigrated.
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
