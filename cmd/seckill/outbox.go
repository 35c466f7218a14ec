package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"text/tabwriter"
	"time"

	"seckill/cmd/internal/cli"
	"seckill/repository"
	"seckill/service/outbox"
)

type outboxCmd struct {
	List  outboxListCmd  `cmd:"" help:"List events, newest first."`
	Show  outboxShowCmd  `cmd:"" help:"Show one event with its payload."`
	Retry outboxRetryCmd `cmd:"" help:"Send failed or waiting events now."`
}

// withOutbox opens the outbox, and closes the database after use.
func (f *databaseFlags) withOutbox(ctx context.Context, out *cli.Output, use func(outbox.Admin) error) (err error) {
	db, err := f.open(ctx, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := db.Migrated(ctx); err != nil {
		return err
	}
	return use(repository.NewOutbox(db))
}

type outboxListCmd struct {
	databaseFlags
	State  string `enum:"pending,sent,failed" default:"failed" help:"Which events: ${enum}."`
	Before int64  `help:"Only events with lower ids: the last id of the previous page."`
	Limit  int    `default:"50" help:"Most events to list."`
}

// Run lists events.
func (c *outboxListCmd) Run(ctx context.Context, out *cli.Output) error {
	if c.Limit < 1 || c.Limit > 10_000 {
		return errors.New("--limit must be from 1 to 10000")
	}
	return c.withOutbox(ctx, out, func(admin outbox.Admin) error {
		entries, err := admin.List(ctx, outbox.State(c.State), c.Before, c.Limit)
		if err != nil {
			return err
		}
		if len(entries) == 0 {
			fmt.Fprintf(out.Stdout, "no %s events; see also --state\n", c.State)
			return nil
		}
		table := tabwriter.NewWriter(out.Stdout, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "event\ttype\torder\tversion\tattempts\tdue\tcreated")
		for _, e := range entries {
			fmt.Fprintf(table, "%d\t%s\t%d\t%d\t%d\t%s\t%s\n", e.ID, e.Type, e.Key, e.Version, e.Attempts,
				e.Due.Format(time.RFC3339), e.CreatedAt.Format(time.RFC3339))
		}
		return table.Flush()
	})
}

type outboxShowCmd struct {
	databaseFlags
	ID int64 `arg:"" help:"Id of the event."`
}

// Run prints an event.
func (c *outboxShowCmd) Run(ctx context.Context, out *cli.Output) error {
	return c.withOutbox(ctx, out, func(admin outbox.Admin) error {
		e, found, err := admin.Show(ctx, c.ID)
		switch {
		case err != nil:
			return err
		case !found:
			return fmt.Errorf("there is no event %d", c.ID)
		}
		fmt.Fprintf(out.Stdout, "event     %d\ntype      %s\norder     %d, version %d\nstate     %s, %d attempts, due %s\ncreated   %s\npayload   %s\n",
			e.ID, e.Type, e.Key, e.Version, e.State, e.Attempts, e.Due.Format(time.RFC3339Nano), e.CreatedAt.Format(time.RFC3339Nano), e.Payload)
		return nil
	})
}

type outboxRetryCmd struct {
	databaseFlags
	IDs []string `arg:"" optional:"" help:"Ids of events."`
	All bool     `help:"All failed events."`
}

// Run makes events due.
func (c *outboxRetryCmd) Run(ctx context.Context, out *cli.Output) error {
	if c.All == (len(c.IDs) > 0) {
		return errors.New("give either the ids of events or --all")
	}
	ids := make([]int64, len(c.IDs))
	for i, text := range c.IDs {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id < 1 {
			return fmt.Errorf("%q is not an event id", text)
		}
		ids[i] = id
	}
	return c.withOutbox(ctx, out, func(admin outbox.Admin) error {
		n, err := 0, error(nil)
		if c.All {
			n, err = admin.RetryFailed(ctx)
		} else {
			n, err = admin.Retry(ctx, ids)
		}
		if err == nil {
			fmt.Fprintf(out.Stdout, "%d events are due now\n", n)
		}
		return err
	})
}
