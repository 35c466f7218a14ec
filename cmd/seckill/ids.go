package main

import (
	"context"
	"fmt"
	"time"

	"seckill/cmd/internal/app"
	"seckill/cmd/internal/cli"
	"seckill/service/idgen"
)

type idsCmd struct {
	Decode  idsDecodeCmd  `cmd:"" help:"Print the parts of a snowflake id."`
	Restore idsRestoreCmd `cmd:"" help:"Raise the id counter of a Redis that lost it (--ids=redis-segment)."`
}

type idsDecodeCmd struct {
	ID string `arg:"" help:"Id of an order, a voucher or an event."`
}

// Run prints the parts of an id.
func (c *idsDecodeCmd) Run(_ context.Context, out *cli.Output) error {
	id, err := idgen.ParseID(c.ID)
	if err != nil {
		return err
	}
	p := idgen.DefaultLayout().Decode(id)
	fmt.Fprintf(out.Stdout, "time %s, data centre %d, worker %d, sequence %d\n",
		p.Time.Format(time.RFC3339Nano), p.DataCenter, p.Worker, p.Sequence)
	return nil
}

type idsRestoreCmd struct {
	app.Servers `embed:"" group:"Servers"`
	app.Log     `embed:"" group:"Log"`
}

// Help describes the command.
func (idsRestoreCmd) Help() string {
	return `A shop with --ids=redis-segment refuses to start or to place orders when Redis has lost its id counter, because a low
counter would repeat ids. This command raises the counter to the highest id that the database has recorded. A correct
counter stays as it is.`
}

// Run raises the counter.
func (c *idsRestoreCmd) Run(ctx context.Context, out *cli.Output) error {
	at, err := app.RestoreIDs(ctx, c.Servers, out.Logger(c.Log.LogLevel, c.Log.LogFormat))
	if err != nil {
		return err
	}
	fmt.Fprintf(out.Stdout, "new ids start after %d\n", at)
	return nil
}
