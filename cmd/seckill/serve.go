package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"seckill/cmd/internal/app"
	"seckill/cmd/internal/cli"
)

type serveCmd struct {
	app.Options `embed:""`
}

// Help describes the command.
func (serveCmd) Help() string {
	return `Without --mysql-dsn the shop is embedded: its data is in a file, its lock and its broker in this process.
With it, any number of instances may serve the same database.

SIGTERM or Ctrl-C shuts the shop down within --shutdown-timeout: readiness fails, requests under way end, queued orders
are committed, locks and leases are released. The second signal kills the shop; acknowledged orders are safe.`
}

// Run serves until ctx ends.
func (c *serveCmd) Run(ctx context.Context, out *cli.Output) error {
	log := out.Logger(c.Log.LogLevel, c.Log.LogFormat)
	shop, err := app.Start(ctx, c.Options, log)
	if err != nil {
		return err
	}
	log.Info("the shop is open", "url", shop.URL(), "board", shop.URL()+"/board", "docs", shop.URL()+"/docs/", "embedded", c.Servers.Embedded())
	if c.Servers.Embedded() {
		fmt.Fprintf(out.Stderr, "embedded shop at %[1]s, board at %[1]s/board, data in %[2]s; admin token: seckill token --user 1 --admin\n", shop.URL(), c.Servers.Data)
	}
	return untilDone(ctx, shop, c.Shutdown.ShutdownTimeout, log)
}

// untilDone waits until ctx ends or the app fails, and closes the app.
func untilDone(ctx context.Context, running *app.App, timeout time.Duration, log *slog.Logger) error {
	var failed error
	select {
	case <-ctx.Done():
		log.Info("shutting down", "within", timeout)
	case failed = <-running.Failed():
	}
	closing, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return errors.Join(failed, running.Close(closing))
}
