package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"seckill/cmd/internal/app"
	"seckill/cmd/internal/cli"
)

type demoCmd struct {
	Buyers     int64 `default:"10000" help:"Users who want one unit each."`
	Stock      int64 `default:"100" help:"Units on sale."`
	Duplicates int   `default:"3" help:"How often each buyer sends the same request at the same time."`
	Clients    int   `default:"64" help:"Most buyers at the same time."`
	JSON       bool  `name:"json" help:"Print the verdict as one JSON object."`
	Keep       bool  `help:"Keep the shop running with small sales until Ctrl-C."`

	app.Options `embed:""`
}

// Help describes the demo.
func (demoCmd) Help() string {
	return `Starts a shop on a free port and sends buyers over real HTTP; each sends its request several times at once.
Then some buyers pay, some cancel, and some do not pay in time, and the returned units are sold again. When all events
have been delivered, the buyers' answers and every invariant are checked against the database. Status 0 only if
everything holds.

Without --mysql-dsn the shop is embedded, with its data in a temporary directory. With it, --migrate is implied, and
the demo's vouchers and orders stay in that database.`
}

// Validate names the first invalid flag.
func (c *demoCmd) Validate() error {
	if c.Buyers < 1 || c.Stock < 1 || c.Duplicates < 1 || c.Clients < 1 {
		return errors.New("--buyers, --stock, --duplicates and --clients must be at least 1")
	}
	if c.Buyers > cli.MaxRequests || c.Duplicates > cli.MaxDuplicates || c.Clients > cli.MaxClients {
		return fmt.Errorf("--buyers must be at most %d, --duplicates %d, --clients %d: they take memory", cli.MaxRequests, cli.MaxDuplicates, cli.MaxClients)
	}
	if c.API.JWTKey == "" && !c.Servers.Embedded() {
		c.API.JWTKey = rand.Text() + rand.Text() // only the demo uses the tokens of this shop
	}
	return c.Options.Validate()
}

// Run runs the whole demo and prints its result.
func (c *demoCmd) Run(ctx context.Context, k *kong.Context, out *cli.Output) (err error) {
	shop, done, err := c.open(ctx, k, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	d, err := newDemo(c, shop, out)
	if err != nil {
		return err
	}
	defer d.client.Close()
	result, err := d.run(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return errors.New("interrupted before there was a verdict")
		}
		return err
	}
	err = out.Finish(c.JSON, result, result.print, result.OK)
	if c.Keep && (err == nil || errors.Is(err, cli.ErrFailed)) {
		d.keep(ctx, out)
	}
	return err
}

// open starts the shop; done closes it and removes its data.
func (c *demoCmd) open(ctx context.Context, k *kong.Context, out *cli.Output) (shop *app.App, done func() error, err error) {
	opts := c.Options
	opts.Servers.Migrate = true
	if !isSet(k, "listen") {
		opts.API.Listen = "127.0.0.1:0"
	}
	if !isSet(k, "expire-every") {
		opts.Commit.ExpireEvery = 200 * time.Millisecond // people watch the demo
	}
	if !isSet(k, "log-level") {
		opts.Log.LogLevel = "warn"
	}
	clean := func() error { return nil }
	if opts.Servers.Embedded() && !isSet(k, "data") {
		if opts.Servers.Data, err = os.MkdirTemp("", "seckill-demo-"); err != nil {
			return nil, nil, err
		}
		clean = func() error { return os.RemoveAll(opts.Servers.Data) }
	}
	if shop, err = app.Start(ctx, opts, out.Logger(opts.Log.LogLevel, opts.Log.LogFormat)); err != nil {
		return nil, nil, errors.Join(err, clean())
	}
	return shop, func() error {
		closing, cancel := context.WithTimeout(context.Background(), opts.Shutdown.ShutdownTimeout)
		defer cancel()
		return errors.Join(shop.Close(closing), clean())
	}, nil
}

// isSet reports whether the user set a flag, on the command line or by its variable.
func isSet(k *kong.Context, name string) bool {
	i := slices.IndexFunc(k.Flags(), func(f *kong.Flag) bool { return f.Name == name })
	flag := k.Flags()[i]
	return slices.ContainsFunc(flag.Envs, func(variable string) bool { return os.Getenv(variable) != "" }) ||
		slices.ContainsFunc(k.Path, func(p *kong.Path) bool { return p.Flag == flag })
}
