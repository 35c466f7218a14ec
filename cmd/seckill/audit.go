package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"seckill/repository"
)

type auditCmd struct {
	databaseFlags
	Settled bool `help:"Nothing is running and the outbox is drained: an event without its effect is a loss."`
	JSON    bool `name:"json" help:"Print the verdict as one JSON object."`
}

func (auditCmd) Help() string {
	return `Reads the whole database in one snapshot and checks every invariant of the README, holding up nobody.
Status 0 if all hold, 1 with the offending rows if one does not.`
}

// Run audits and prints.
func (c *auditCmd) Run(ctx context.Context, out *output) (err error) {
	db, err := c.open(ctx, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.Migrated(ctx); err != nil {
		return err
	}
	audit, err := db.Audit(ctx, repository.AuditOptions{Settled: c.Settled})
	if err != nil {
		return err
	}
	if c.JSON {
		encoder := json.NewEncoder(out.stdout)
		encoder.SetIndent("", "  ")
		if err := encoder.Encode(audit); err != nil {
			return err
		}
	} else {
		printAudit(out.stdout, &audit)
	}
	if !audit.OK {
		return errVerdict
	}
	return nil
}

// printAudit writes a line for each check, and the offending rows below it.
func printAudit(w io.Writer, a *repository.Audit) {
	for _, f := range a.Findings {
		mark := "ok    "
		if !f.OK {
			mark = "BROKEN"
		}
		fmt.Fprintf(w, "%s  %d  %s\n", mark, f.Invariant, f.Check)
		for _, row := range f.Rows {
			fmt.Fprintf(w, "           %v\n", row)
		}
		if rest := f.Broken - int64(len(f.Rows)); rest > 0 {
			fmt.Fprintf(w, "           and %d more\n", rest)
		}
	}
	t := a.Totals
	fmt.Fprintf(w, "\n%d vouchers, %d units, %d left; %d orders: %d pending, %d paid, %d closed; %d events, %d of them not sent\n",
		t.Vouchers, t.Total, t.Stock, t.Orders, t.Pending, t.Paid, t.Closed, t.Events, t.Unsent)
}
