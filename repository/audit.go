package repository

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"gorm.io/gorm"

	"seckill/service"
)

// Audit is the machine's verdict over a database: does every invariant of the shop hold?
type Audit struct {
	OK       bool      `json:"ok"`
	At       time.Time `json:"at"`
	Totals   Totals    `json:"totals"`
	Findings []Finding `json:"findings"` // one for each check, broken or not
}

// Totals count what the audit looked at.
type Totals struct {
	Vouchers  int64 `json:"vouchers"`
	Total     int64 `json:"total"`  // units ever on sale
	Stock     int64 `json:"stock"`  // units left
	Orders    int64 `json:"orders"` // ever placed
	Pending   int64 `json:"pending"`
	Paid      int64 `json:"paid"`
	Closed    int64 `json:"closed"`
	Oversold  int64 `json:"oversold"`   // live orders beyond the total, over all vouchers
	Excess    int64 `json:"duplicates"` // live orders beyond their user's limit
	Events    int64 `json:"events"`
	Unsent    int64 `json:"unsent_events"`
	Effects   int64 `json:"effects"` // of the points consumer
	Refunds   int64 `json:"refunds_due"`
	Surviving int64 `json:"live"` // orders that hold a unit
}

// Finding is the outcome of one check.
type Finding struct {
	Invariant int              `json:"invariant"` // as numbered in the README
	Check     string           `json:"check"`
	OK        bool             `json:"ok"`
	Broken    int64            `json:"broken"`         // how many rows break it
	Rows      []map[string]any `json:"rows,omitempty"` // the first of them
}

// auditRows is how many offending rows a finding shows.
const auditRows = 10

// AuditOptions say what can be expected of the database at this moment.
type AuditOptions struct {
	// Settled: nothing is running, and the outbox has been drained. Then an event without its effect is a loss, where
	// it would otherwise be on its way.
	Settled bool
}

// Audit runs every check in one snapshot. It reads whole tables and takes its time, without holding up anybody.
func (db *DB) Audit(ctx context.Context, opts AuditOptions) (Audit, error) {
	audit := Audit{OK: true}
	err := db.snapshot(ctx, func(tx *gorm.DB) error {
		var now dbTime
		if err := tx.Raw("SELECT " + db.dialect.now).Row().Scan(&now); err != nil {
			return err
		}
		audit.At = now.Time
		if err := tx.Raw(totalsSQL).Scan(&audit.Totals).Error; err != nil {
			return fmt.Errorf("audit totals: %w", err)
		}
		for _, c := range auditChecks {
			if c.whenSettled && !opts.Settled {
				continue
			}
			finding, err := c.run(tx)
			if err != nil {
				return fmt.Errorf("audit %q: %w", c.name, err)
			}
			audit.OK = audit.OK && finding.OK
			audit.Findings = append(audit.Findings, finding)
		}
		return nil
	})
	if err != nil && (passing(err) || ctx.Err() != nil) {
		err = service.Unavailable(err)
	}
	return audit, err
}

// snapshot runs fn in a transaction that sees one state of the database throughout.
func (db *DB) snapshot(ctx context.Context, fn func(tx *gorm.DB) error) error {
	return db.patient().session(ctx).Connection(func(conn *gorm.DB) error {
		if db.dialect.name == mysqlDialect.name {
			if err := conn.Exec("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ").Error; err != nil {
				return err
			}
		}
		return conn.Transaction(fn)
	})
}

func (c auditCheck) run(tx *gorm.DB) (Finding, error) {
	f := Finding{Invariant: c.invariant, Check: c.name}
	if err := tx.Raw("SELECT COUNT(*) FROM (" + c.offending + ") AS broken").Scan(&f.Broken).Error; err != nil {
		return f, err
	}
	f.OK = f.Broken == 0
	if f.OK {
		return f, nil
	}
	if err := tx.Raw(c.offending+" LIMIT ?", auditRows).Scan(&f.Rows).Error; err != nil {
		return f, err
	}
	for _, row := range f.Rows {
		for column, value := range row {
			if id, ok := value.(int64); ok && (column == "id" || strings.HasSuffix(column, "_id")) {
				row[column] = strconv.FormatInt(id, 10) // ids do not fit in the numbers of JSON's readers
			}
		}
	}
	return f, nil
}

// Err is nil if the verdict is good, else an error that names what is broken.
func (a *Audit) Err() error {
	if a.OK {
		return nil
	}
	var broken []string
	for _, f := range a.Findings {
		if !f.OK {
			broken = append(broken, fmt.Sprintf("invariant %d, %s: %d rows, such as %v", f.Invariant, f.Check, f.Broken, f.Rows[0]))
		}
	}
	return fmt.Errorf("audit: %s", strings.Join(broken, "; "))
}
