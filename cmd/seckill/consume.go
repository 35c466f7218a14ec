package main

import (
	"context"

	"seckill/cmd/internal/app"
)

type consumeCmd struct {
	app.Servers  `embed:"" group:"Servers"`
	app.Events   `embed:"" group:"Events"`
	app.Log      `embed:"" group:"Log"`
	app.Shutdown `embed:"" group:"Shutdown"`
}

func (consumeCmd) Help() string {
	return `Runs the consumers (points for paid orders, notifications) in a process of their own, until Ctrl-C or SIGTERM.
The shop's instances may then serve with --no-consume. However many consume, each event takes effect once.`
}

// Run consumes until ctx ends.
func (c *consumeCmd) Run(ctx context.Context, out *output) error {
	opts := app.Options{Servers: c.Servers, Events: c.Events, Log: c.Log, Shutdown: c.Shutdown}
	return app.Consume(ctx, opts, out.logger(c.Log))
}
