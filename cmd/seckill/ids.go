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
	Decode  idsDecodeCmd  `cmd:"" help:"Take a snowflake id apart."`
	Restore idsRestoreCmd `cmd:"" help:"Let a Redis that lost its counter give ids away again (--ids=redis-segment)."`
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

func (idsRestoreCmd) Help() string {
	return `A shop with --ids=redis-segment refuses to start, or to go on, when Redis has lost its counter: what it shows
may have been given away. This sets the counter to the highest number that the database knows to be given away, so
that no id comes twice. It does nothing to a counter that is in order.`
}

// Run raises the counter.
func (c *idsRestoreCmd) Run(ctx context.Context, out *cli.Output) error {
	at, err := app.RestoreIDs(ctx, c.Servers, out.Logger(c.Log.LogLevel, c.Log.LogFormat))
	if err != nil {
		return err
	}
	fmt.Fprintf(out.Stdout, "ids go on after %d\n", at)
	return nil
}
