package main

import (
	"context"

	"seckill/cmd/internal/app"
	"seckill/cmd/internal/cli"
)

type consumeCmd struct {
	app.Servers       `embed:"" group:"Servers"`
	app.BrokerOptions `embed:"" group:"Events"`
	Listen            string `placeholder:"HOST:PORT" help:"Address of /healthz, /readyz and /metrics. Off by default."`
	app.Log           `embed:"" group:"Log"`
	app.Trace         `embed:"" group:"Traces"`
	app.Shutdown      `embed:"" group:"Shutdown"`
}

// Help describes the command.
func (consumeCmd) Help() string {
	return `Runs only the consumers (points for paid orders, notifications), until Ctrl-C or SIGTERM. Instances of the shop may then
serve with --no-consume. Each event takes effect once, however many processes consume.`
}

// Run consumes until ctx ends or a consumer fails.
func (c *consumeCmd) Run(ctx context.Context, out *cli.Output) error {
	opts := app.Options{Servers: c.Servers, Events: app.Events{BrokerOptions: c.BrokerOptions}, Log: c.Log, Trace: c.Trace, Shutdown: c.Shutdown}
	opts.API.Listen = c.Listen
	log := out.Logger(c.Log.LogLevel, c.Log.LogFormat)
	consumers, err := app.StartConsumers(ctx, opts, log)
	if err != nil {
		return err
	}
	return untilDone(ctx, consumers, c.ShutdownTimeout, log)
}
