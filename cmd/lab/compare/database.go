package compare

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/go-sql-driver/mysql"

	"seckill/cmd/internal/app"
	"seckill/repository"
)

// place is where one turn keeps its data: a database of its own on the configured server, or a directory.
type place struct {
	dsn, database string
	data          string
	admin         *sql.DB // of the server; nil if embedded
}

// newPlace makes an empty one; remove it.
func newPlace(ctx context.Context, s *app.Servers) (*place, error) {
	if s.Embedded() {
		dir, err := os.MkdirTemp("", "seckill-compare-")
		return &place{data: dir}, err
	}
	cfg, err := mysql.ParseDSN(s.MySQLDSN)
	if err != nil {
		return nil, fmt.Errorf("--mysql-dsn: %w", err)
	}
	name := cfg.DBName
	if name == "" {
		name = "seckill"
	}
	p := &place{database: name[:min(len(name), 40)] + "_compare_" + strings.ToLower(rand.Text()[:8])}
	cfg.DBName = ""
	cfg.Logger = &mysql.NopLogger{}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("--mysql-dsn: %w", err)
	}
	p.admin = sql.OpenDB(connector)
	if _, err := p.admin.ExecContext(ctx, "CREATE DATABASE "+quoted(p.database)+" CHARACTER SET utf8mb4"); err != nil {
		return nil, errors.Join(fmt.Errorf("a database for the comparison: %w", err), p.admin.Close())
	}
	cfg.DBName = p.database
	p.dsn = cfg.FormatDSN()
	return p, nil
}

func quoted(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// remove removes everything, also after ctx of the turn has ended.
func (p *place) remove(ctx context.Context) error {
	if p.admin == nil {
		return os.RemoveAll(p.data)
	}
	_, err := p.admin.ExecContext(context.WithoutCancel(ctx), "DROP DATABASE "+quoted(p.database))
	return errors.Join(err, p.admin.Close())
}

// open opens the database, for the audit.
func (p *place) open(ctx context.Context, log *slog.Logger) (*repository.DB, error) {
	return app.OpenDatabase(ctx, &app.Options{Servers: app.Servers{MySQLDSN: p.dsn, Data: p.data}}, log)
}
