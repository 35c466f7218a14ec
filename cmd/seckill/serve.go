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

func (serveCmd) Help() string {
	return `Without --mysql-dsn the shop is embedded: its data is in a file, its lock and its broker in this process.
With it, any number of instances may serve the same database side by side.

SIGTERM or Ctrl-C: readiness fails, requests in hand are finished, what waits is committed, locks and leases are
given back, all within --shutdown-timeout. The same signal again ends it at once: what was answered stands.`
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
		fmt.Fprintf(out.Stderr, "embedded shop at %[1]s, its board at %[1]s/board, data in %[2]s; an admin's token: seckill token --user 1 --admin\n", shop.URL(), c.Servers.Data)
	}
	return untilDone(ctx, shop, c.Shutdown.ShutdownTimeout, log)
}

// untilDone waits until ctx ends or what runs fails, and closes it.
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
