package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"seckill/cmd/internal/app"
	"seckill/cmd/internal/cli"
	"seckill/cmd/internal/verdict"
	"seckill/loadtest"
)

// demo is one telling of the story.
type demo struct {
	cmd    *demoCmd
	shop   *app.App
	out    *cli.Output
	tokens *cli.Tokens
	client *loadtest.Client
	claims *verdict.Claims // what the clients were told

	mu     sync.Mutex
	later  []int64   // some of those who were too late
	orders []order   // that the sale placed
	last   time.Time // when its last buyer had an order
}

// order is an order as its buyer knows it.
type order struct {
	user int64
	id   string
}

func newDemo(cmd *demoCmd, shop *app.App, out *cli.Output) (*demo, error) {
	d := &demo{cmd: cmd, shop: shop, out: out, claims: verdict.NewClaims()}
	var err error
	if d.tokens, err = cli.NewTokens(shop.JWTKey); err != nil {
		return nil, err
	}
	if d.client, err = loadtest.NewClient(shop.URL(), loadtest.ClientOptions{Token: d.tokens.Of}); err != nil {
		return nil, err
	}
	return d, nil
}

// run tells the story from the opening to the verdict.
func (d *demo) run(ctx context.Context) (*demoResult, error) {
	result := &demoResult{Buyers: d.cmd.Buyers, Stock: d.cmd.Stock, Copies: d.cmd.Duplicates, Backends: d.backends()}
	hot, err := d.createVoucher("Dinner for two", d.cmd.Stock, 15*time.Minute)
	if err != nil {
		return nil, err
	}
	d.tokens.Prepare(cli.FirstBuyer, d.cmd.Buyers)
	if err := d.sale(ctx, hot, result); err != nil {
		return nil, err
	}
	if err := d.afterSale(ctx, hot, result); err != nil {
		return nil, err
	}
	if err := d.expiry(ctx, result); err != nil {
		return nil, err
	}
	return result, d.prove(ctx, hot, result)
}

// backends names what the shop runs on.
func (d *demo) backends() string {
	database, lock := d.shop.DB.Name()+" "+d.shop.DB.Version(), "no lock"
	if d.cmd.Servers.Embedded() {
		database = "SQLite"
	}
	if d.cmd.Lock.Lock != "none" {
		lock = "the lock in " + d.cmd.Lock.Lock
	}
	if d.cmd.Servers.Embedded() {
		return database + " and " + lock + ", all embedded"
	}
	return database + " and " + lock
}

// createVoucher puts a voucher on sale that sells one unit to a user.
func (d *demo) createVoucher(title string, stock int64, payWithin time.Duration) (loadtest.Voucher, error) {
	now := time.Now()
	return d.client.CreateVoucher(cli.Admin, loadtest.NewVoucher{
		Title: title, PriceCents: 4900, Stock: stock, UserLimit: 1, PaySeconds: int64(payWithin / time.Second),
		StartsAt: now.Add(-time.Minute), EndsAt: now.Add(24 * time.Hour),
	})
}

// recorder returns a recorder whose entries go to the claims.
func (d *demo) recorder() *loadtest.Recorder { return loadtest.NewRecorder(d.claims.Add) }

func (d *demo) buyers(r *loadtest.Recorder, voucher string) *loadtest.Buyers {
	return &loadtest.Buyers{
		Client: d.client, Recorder: r, Voucher: voucher, FirstUser: cli.FirstBuyer, Users: d.cmd.Buyers,
		Copies: d.cmd.Duplicates, CopyShare: 1, Name: loadtest.NewName(),
	}
}

// sale lets every buyer come once, and settles what they could not be told.
func (d *demo) sale(ctx context.Context, hot loadtest.Voucher, result *demoResult) error {
	r := d.recorder()
	buyers := d.buyers(r, hot.ID)
	stop := cli.ShowProgress(d.out.Stderr, fmt.Sprintf("%d buyers for %d units", d.cmd.Buyers, d.cmd.Stock), d.cmd.Buyers*int64(d.cmd.Duplicates), r)
	load := loadtest.Load{Clients: d.cmd.Clients, Arrivals: d.cmd.Buyers}
	began := time.Now()
	err := load.Run(ctx, func(a loadtest.Arrival) { d.note(buyers.Buyer(a.N), buyers.Buy(a)) }, nil)
	result.Sale = r.Report()
	stop()
	if err := errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	result.SellingTime = max(d.last.Sub(began), 0)
	if unknown := r.TakeUnknown(); len(unknown) > 0 {
		settling, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		result.Settled = loadtest.Settle(settling, d.client, d.recorder(), unknown)
	}
	return nil
}

// note remembers who got an order, and some of those who did not.
func (d *demo) note(user int64, a loadtest.Answer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case a.Outcome.Class() == loadtest.Accepted:
		d.orders = append(d.orders, order{user, a.Order})
		if done := a.Start.Add(a.Took); done.After(d.last) {
			d.last = done
		}
	case a.Outcome == "sold-out" && int64(len(d.later)) < d.cmd.Stock:
		d.later = append(d.later, user)
	}
}
