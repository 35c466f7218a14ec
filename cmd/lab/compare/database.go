package compare

import (
	"cmp"
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

// tempDatabase is the empty database of one trial: a database on the configured server, or a directory.
type tempDatabase struct {
	dsn, name string
	dir       string  // of an embedded shop
	admin     *sql.DB // connection to the server; nil if embedded
}

// newTempDatabase creates a database. The caller drops it.
func newTempDatabase(ctx context.Context, s *app.Servers) (*tempDatabase, error) {
	if s.Embedded() {
		dir, err := os.MkdirTemp("", "seckill-compare-")
		return &tempDatabase{dir: dir}, err
	}
	cfg, err := mysql.ParseDSN(s.MySQLDSN)
	if err != nil {
		return nil, fmt.Errorf("--mysql-dsn: %w", err)
	}
	name := cmp.Or(cfg.DBName, "seckill")
	d := &tempDatabase{name: name[:min(len(name), 40)] + "_compare_" + strings.ToLower(rand.Text()[:8])}
	cfg.DBName, cfg.Logger = "", &mysql.NopLogger{}
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("--mysql-dsn: %w", err)
	}
	d.admin = sql.OpenDB(connector)
	if _, err := d.admin.ExecContext(ctx, "CREATE DATABASE "+quote(d.name)+" CHARACTER SET utf8mb4"); err != nil {
		return nil, errors.Join(fmt.Errorf("create a database: %w", err), d.admin.Close())
	}
	cfg.DBName = d.name
	d.dsn = cfg.FormatDSN()
	return d, nil
}

func quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// drop deletes the database, even if ctx has ended.
func (d *tempDatabase) drop(ctx context.Context) error {
	if d.admin == nil {
		return os.RemoveAll(d.dir)
	}
	_, err := d.admin.ExecContext(context.WithoutCancel(ctx), "DROP DATABASE "+quote(d.name))
	return errors.Join(err, d.admin.Close())
}

// open opens the database after the shop has ended.
func (d *tempDatabase) open(ctx context.Context, log *slog.Logger) (*repository.DB, error) {
	return app.OpenDatabase(ctx, &app.Options{Servers: app.Servers{MySQLDSN: d.dsn, Data: d.dir}}, log)
}
