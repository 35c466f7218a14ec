package shop

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"

	"seckill/service"
	"seckill/service/idgen"
)

var tables = []string{`
CREATE TABLE IF NOT EXISTS luastream_voucher (
  id          BIGINT       NOT NULL PRIMARY KEY,
  title       VARCHAR(120) NOT NULL,
  price_cents BIGINT       NOT NULL,
  pay_seconds INT          NOT NULL,
  starts_at   DATETIME(3)  NOT NULL,
  ends_at     DATETIME(3)  NOT NULL,
  total       BIGINT       NOT NULL,
  stock       BIGINT       NOT NULL,
  CHECK (stock >= 0)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4`, `
CREATE TABLE IF NOT EXISTS luastream_order (
  id         BIGINT      NOT NULL PRIMARY KEY,
  voucher_id BIGINT      NOT NULL,
  user_id    BIGINT      NOT NULL,
  created_at DATETIME(3) NOT NULL,
  UNIQUE KEY order_once (voucher_id, user_id)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4`}

// openTables connects, with parameters put into the text by the driver: one round trip a statement.
func openTables(ctx context.Context, dsn string) (*sql.DB, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, fmt.Errorf("mysql dsn: %w", err)
	}
	cfg.ParseTime, cfg.Loc, cfg.InterpolateParams, cfg.ClientFoundRows = true, time.UTC, true, false
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, fmt.Errorf("mysql dsn: %w", err)
	}
	db := sql.OpenDB(connector)
	for _, table := range tables {
		if _, err := db.ExecContext(ctx, table); err != nil {
			return nil, errors.Join(fmt.Errorf("mysql: %w", err), db.Close())
		}
	}
	return db, nil
}

func insertVoucher(ctx context.Context, db *sql.DB, v *service.Voucher) error {
	_, err := db.ExecContext(ctx, "INSERT INTO luastream_voucher VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		v.ID, v.Title, v.PriceCents, int64(v.PayWithin/time.Second), v.StartsAt, v.EndsAt, v.Total, v.Stock)
	return err
}

// readVoucher fails with service.ErrNotFound where there is none.
func readVoucher(ctx context.Context, db *sql.DB, id idgen.ID) (v service.Voucher, err error) {
	var seconds int64
	v.UserLimit = 1
	err = db.QueryRowContext(ctx, "SELECT id, title, price_cents, pay_seconds, starts_at, ends_at, total, stock FROM luastream_voucher WHERE id = ?", id).
		Scan(&v.ID, &v.Title, &v.PriceCents, &seconds, &v.StartsAt, &v.EndsAt, &v.Total, &v.Stock)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return v, service.ErrNotFound
	case err != nil:
		return v, service.Unavailable(err)
	}
	v.PayWithin = time.Duration(seconds) * time.Second
	return v, nil
}
