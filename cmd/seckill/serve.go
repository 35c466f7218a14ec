package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
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

type healthCmd struct {
	URL     string        `name:"url" default:"http://127.0.0.1:8080/readyz" help:"Address to request."`
	Timeout time.Duration `default:"3s" help:"How long to wait for the answer."`
}

// Run sends one request. The status must be 200.
func (c *healthCmd) Run(ctx context.Context, out *cli.Output) error {
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	fmt.Fprintln(out.Stdout, answer.Status)
	if answer.StatusCode != http.StatusOK {
		return cli.ErrFailed
	}
	return nil
}
