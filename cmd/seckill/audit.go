package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"seckill/cmd/internal/cli"
	"seckill/cmd/internal/verdict"
)

type auditCmd struct {
	databaseFlags
	Settled bool   `help:"Nothing is running and the outbox is drained: an event without its effect is a loss."`
	Journal string `type:"existingfile" placeholder:"FILE" help:"Also compare this journal of a load with the database, once no request is under way."`
	Whole   bool   `help:"Only the journal's clients ordered its vouchers: an order that it does not know is a defect."`
	JSON    bool   `name:"json" help:"Print the verdict as one JSON object."`
}

// Help describes the command.
func (auditCmd) Help() string {
	return `Reads the whole database in one snapshot, without locking it, and checks every invariant of the README.
Status 0 if all of them hold, 1 with the offending rows if one does not.`
}

// Run checks and prints.
func (c *auditCmd) Run(ctx context.Context, out *cli.Output) (err error) {
	db, err := c.open(ctx, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.Migrated(ctx); err != nil {
		return err
	}
	claims, err := c.claims()
	if err != nil {
		return err
	}
	v, err := verdict.Check(ctx, db, claims, verdict.Options{Settled: c.Settled, Complete: c.Whole})
	if err != nil {
		return err
	}
	return out.Finish(c.JSON, v, func(w io.Writer) { v.Print(w, true) }, v.OK)
}

// claims reads the journal; nil if there is none.
func (c *auditCmd) claims() (*verdict.Claims, error) {
	if c.Journal == "" {
		return nil, nil
	}
	file, err := os.Open(c.Journal)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	claims, err := verdict.ReadJournal(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Journal, err)
	}
	return claims, nil
}
