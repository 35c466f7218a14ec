package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/alecthomas/kong"

	"seckill/cmd/internal/app"
	"seckill/cmd/internal/cli"
)

type demoCmd struct {
	Buyers     int64 `default:"10000" help:"Users who all want one unit at the same moment."`
	Stock      int64 `default:"100" help:"Units on sale."`
	Duplicates int   `default:"3" help:"How often each buyer sends the same request at once."`
	Clients    int   `default:"64" help:"Buyers who are served at the same time."`
	JSON       bool  `name:"json" help:"Print the verdict as one JSON object."`
	Keep       bool  `help:"Leave the shop up for a look, with small sales that go on, until Ctrl-C."`

	app.Options `embed:""`
}

func (demoCmd) Help() string {
	return `A shop starts on a free port, and the buyers come over real HTTP, each sending its request several times at once.
Then some pay, some cancel, and some do not pay in time; what they give back is sold again. When the last event has
been delivered, what the clients were told is held against the database, and the database against every invariant.
Status 0 only if everything holds.

Without --mysql-dsn the shop is embedded, its data in a temporary directory. With it, --migrate is implied, and the
demo's vouchers and orders stay in that database.`
}

// Validate refuses what cannot be; the embedded options have a say too.
func (c *demoCmd) Validate() error {
	if c.Buyers < 1 || c.Stock < 1 || c.Duplicates < 1 || c.Clients < 1 {
		return errors.New("--buyers, --stock, --duplicates and --clients must be at least 1")
	}
	if c.Buyers > cli.MaxRequests || c.Duplicates > cli.MaxDuplicates || c.Clients > cli.MaxClients {
		return fmt.Errorf("--buyers must be at most %d, --duplicates %d, --clients %d: each takes memory here", cli.MaxRequests, cli.MaxDuplicates, cli.MaxClients)
	}
	if c.API.JWTKey == "" && !c.Servers.Embedded() {
		c.API.JWTKey = rand.Text() + rand.Text() // this shop's tokens are used by nobody but the demo
	}
	return c.Options.Validate()
}

// Run plays the whole story and prints its verdict.
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
	if c.JSON {
		err = out.JSON(result)
	} else {
		result.print(out.Stdout)
	}
	if err != nil {
		return err
	}
	if c.Keep {
		d.keep(ctx, out)
	}
	if !result.OK {
		return cli.ErrFailed
	}
	return nil
}

// open starts the shop; done closes it and removes what it leaves.
func (c *demoCmd) open(ctx context.Context, k *kong.Context, out *cli.Output) (shop *app.App, done func() error, err error) {
	opts := c.Options
	opts.Servers.Migrate = true
	if !given(k, "listen") {
		opts.API.Listen = "127.0.0.1:0"
	}
	if !given(k, "expire-every") {
		opts.Commit.ExpireEvery = 200 * time.Millisecond // a demo is watched
	}
	if !given(k, "log-level") {
		opts.Log.LogLevel = "warn"
	}
	clean := func() error { return nil }
	if opts.Servers.Embedded() && !given(k, "data") {
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
