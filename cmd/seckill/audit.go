package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"seckill/cmd/internal/cli"
	"seckill/cmd/internal/reconcile"
	"seckill/repository"
)

type auditCmd struct {
	databaseFlags
	Settled bool   `help:"Nothing is running and the outbox is drained: an event without its effect is a loss."`
	Journal string `type:"existingfile" placeholder:"FILE" help:"Also hold this journal of a load against the database, when nothing is under way any more."`
	Whole   bool   `help:"Nobody but the journal's clients ordered its vouchers: an order that it does not know is a defect."`
	JSON    bool   `name:"json" help:"Print the verdict as one JSON object."`
}

func (auditCmd) Help() string {
	return `Reads the whole database in one snapshot and checks every invariant of the README, holding up nobody.
Status 0 if all hold, 1 with the offending rows if one does not.`
}

// Run audits and prints.
func (c *auditCmd) Run(ctx context.Context, out *cli.Output) (err error) {
	db, err := c.open(ctx, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.Migrated(ctx); err != nil {
		return err
	}
	audit := journaledAudit{}
	if audit.Audit, err = db.Audit(ctx, repository.AuditOptions{Settled: c.Settled}); err != nil {
		return err
	}
	if c.Journal != "" {
		if err := audit.hold(ctx, db, c.Journal, c.Whole); err != nil {
			return err
		}
	}
	if c.JSON {
		if err := out.JSON(audit); err != nil {
			return err
		}
	} else {
		printAudit(out.Stdout, &audit.Audit)
		audit.Journal.print(out.Stdout)
	}
	if !audit.OK {
		return cli.ErrFailed
	}
	return nil
}

// journaledAudit is an audit that may also have held a journal against the database. The journal's findings stand among
// the others.
type journaledAudit struct {
	repository.Audit
	Journal *journalTotals `json:"journal,omitempty"`
}

// journalTotals are what a journal says, in numbers.
type journalTotals reconcile.Verdict

// hold holds a journal against the database.
func (a *journaledAudit) hold(ctx context.Context, db *repository.DB, path string, whole bool) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	book, err := reconcile.Read(file)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	verdict, err := book.Check(ctx, db, reconcile.Options{Whole: whole})
	if err != nil {
		return err
	}
	a.OK = a.OK && verdict.OK
	a.Findings = append(a.Findings, verdict.Findings...)
	verdict.Findings = nil // they stand among the others
	a.Journal = (*journalTotals)(&verdict)
	return nil
}

// print writes a line with the totals, if there are any.
func (t *journalTotals) print(w io.Writer) {
	if t == nil {
		return
	}
	fmt.Fprintf(w, "journal: %d entries; %d orders told of; %d requests with an unknown outcome, %d of them never settled\n",
		t.Entries, t.Told, t.Unknown, t.Open)
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
