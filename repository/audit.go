package repository

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"gorm.io/gorm"

	"seckill/service"
	"seckill/service/idgen"
)

// AuditOptions say what can be expected of the database at this moment.
type AuditOptions struct {
	// Settled says that nothing is running and that the outbox has been drained. An event that was not sent, or has no
	// effect, is then a loss; otherwise it may still be on its way.
	Settled bool
}

// maxFindingRows is the number of offending rows that a finding shows.
const maxFindingRows = 10

// Audit runs every check in one snapshot. It reads whole tables without locking them, and may take minutes.
func (db *DB) Audit(ctx context.Context, opts AuditOptions) (audit service.Audit, err error) {
	snapshot := &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
	err = db.forLongQueries().session(ctx).Transaction(func(tx *gorm.DB) error {
		audit, err = runAudit(tx, db.dialect.now, opts)
		return err
	}, snapshot)
	return audit, toServiceError(ctx, err)
}

func runAudit(tx *gorm.DB, now string, opts AuditOptions) (service.Audit, error) {
	audit := service.Audit{OK: true}
	var at dbTime
	if err := tx.Raw("SELECT " + now).Row().Scan(&at); err != nil {
		return audit, err
	}
	audit.At = at.Time
	if err := tx.Raw(auditTotals).Scan(&audit.Totals).Error; err != nil {
		return audit, fmt.Errorf("audit totals: %w", err)
	}
	for _, c := range auditChecks {
		if c.whenSettled && !opts.Settled {
			continue
		}
		finding, err := c.run(tx)
		if err != nil {
			return audit, fmt.Errorf("audit %s: %w", c.id, err)
		}
		audit.OK = audit.OK && finding.OK
		audit.Findings = append(audit.Findings, finding)
	}
	return audit, nil
}

func (c auditCheck) run(tx *gorm.DB) (service.Finding, error) {
	f := service.Finding{ID: c.id, Invariant: c.invariant, Check: c.holds}
	err := tx.Raw("SELECT COUNT(*) FROM (" + c.offending + ") AS broken").Scan(&f.Broken).Error
	f.OK = f.Broken == 0
	if err == nil && !f.OK {
		f.Rows, err = textRows(tx.Raw(c.offending+" LIMIT ?", maxFindingRows).Rows())
	}
	return f, err
}

// textRows reads rows of any columns as text. A null is left out.
func textRows(rows *sql.Rows, err error) (all []map[string]string, _ error) {
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err has reported what can go wrong
	columns, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	values, targets := make([]sql.NullString, len(columns)), make([]any, len(columns))
	for i := range values {
		targets[i] = &values[i]
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return nil, err
		}
		row := map[string]string{}
		for i, value := range values {
			if value.Valid {
				row[columns[i]] = value.String
			}
		}
		all = append(all, row)
	}
	return all, rows.Err()
}

// StockBalance adds up the vouchers whose sale has not ended, or ended less than recent ago. One statement reads one
// state of the database; of the orders it reads only the index of slots.
func (db *DB) StockBalance(ctx context.Context, recent time.Duration) (b service.StockBalance, err error) {
	err = db.forLongQueries().session(ctx).Raw(`
SELECT COUNT(*) AS vouchers, COALESCE(SUM(total), 0) AS total, COALESCE(SUM(stock), 0) AS stock, COALESCE(SUM(live), 0) AS live,
       COALESCE(SUM(CASE WHEN live > total THEN live - total ELSE 0 END), 0) AS oversold,
       COALESCE(SUM(ABS(total - stock - live)), 0) AS unaccounted
  FROM (SELECT s.total, s.stock,
               (SELECT COUNT(o.slot) FROM voucher_order o WHERE o.voucher_id = s.voucher_id AND o.slot IS NOT NULL) AS live
          FROM voucher_stock s WHERE s.ends_at > ` + db.dialect.nowPlus(-recent) + `) AS sale`).Scan(&b).Error
	if err != nil {
		return b, fmt.Errorf("stock balance: %w", err)
	}
	return b, nil
}

// EachOrder calls fn for every order of the vouchers, in no particular order, and stops at the first error. fn runs while
// rows are being read, so it must not use the database.
func (db *DB) EachOrder(ctx context.Context, vouchers []idgen.ID, fn func(service.Order) error) (err error) {
	if len(vouchers) == 0 {
		return nil
	}
	session := db.forLongQueries().session(ctx)
	rows, err := session.Model(&orderRow{}).Where("voucher_id IN ?", vouchers).Rows()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var row orderRow
		if err := session.ScanRows(rows, &row); err != nil {
			return err
		}
		if err := fn(row.order()); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Unsent counts the events that the broker has not confirmed yet.
func (db *DB) Unsent(ctx context.Context) (n int64, err error) {
	err = db.session(ctx).Raw("SELECT COUNT(*) FROM outbox_event WHERE status IN ?", []int{outboxPending, outboxFailed}).Scan(&n).Error
	return n, err
}
