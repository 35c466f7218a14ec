package service

import (
	"fmt"
	"strings"
	"time"
)

// Audit is the result of checking every invariant of the shop in one snapshot of the database.
type Audit struct {
	OK       bool
	At       time.Time // of the snapshot, by the database's clock
	Totals   AuditTotals
	Findings []Finding // one for each check, whether it holds or not
}

// AuditTotals count what the audit has read.
type AuditTotals struct {
	Vouchers   int64
	Total      int64 // units ever put on sale
	Stock      int64 // units left
	Orders     int64 // ever placed
	Live       int64 // orders that hold a unit
	Pending    int64
	Paid       int64
	Closed     int64
	Oversold   int64 // live orders beyond the total, over all vouchers
	Duplicates int64 // live orders beyond their user's limit
	Events     int64
	Unsent     int64 // events that the broker has not confirmed
	Effects    int64 // of the points consumer
	RefundsDue int64
}

// Finding is the result of one check.
type Finding struct {
	ID        string // stable, such as "stock-balance"
	Invariant int    // as numbered in the README
	Check     string // what has to hold
	OK        bool
	Broken    int64               // number of rows that break it
	Rows      []map[string]string // the first of them, by column
}

// String describes a broken finding in one line.
func (f Finding) String() string {
	text := fmt.Sprintf("%s (%s): broken by %d", f.Check, f.ID, f.Broken)
	if f.Invariant > 0 {
		text = fmt.Sprintf("invariant %d, %s", f.Invariant, text)
	}
	if len(f.Rows) > 0 {
		text += fmt.Sprintf(", for example %v", f.Rows[0])
	}
	return text
}

// Err returns nil if every invariant holds, else an error that names the broken ones.
func (a *Audit) Err() error {
	var broken []string
	for _, f := range a.Findings {
		if !f.OK {
			broken = append(broken, f.String())
		}
	}
	if len(broken) == 0 {
		return nil
	}
	return fmt.Errorf("audit: %s", strings.Join(broken, "; "))
}

// StockBalance adds up the units of the vouchers that are, or were recently, on sale. It is the part of the audit that is
// cheap enough for a metric.
type StockBalance struct {
	Vouchers    int64
	Total       int64 // units ever put on sale
	Stock       int64 // units left
	Live        int64 // orders that hold a unit
	Oversold    int64 // live orders beyond the total of their voucher
	Unaccounted int64 // sum of |total - stock - live orders| over all vouchers
}
