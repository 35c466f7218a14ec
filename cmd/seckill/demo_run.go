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
	"seckill/repository"
	"seckill/service/outbox"
)

// demo is a demo that runs.
type demo struct {
	cmd    *demoCmd
	shop   *app.App
	out    *cli.Output
	tokens *cli.Tokens
	client *loadtest.Client
	claims *verdict.Claims // what the buyers were told
	result demoResult

	mu      sync.Mutex
	soldOut []int64   // some of the users who were told so
	orders  []order   // placed in the sale
	last    time.Time // when the last buyer got an order
}

// order is an order as its buyer knows it.
type order struct {
	user int64
	id   string
}

func newDemo(cmd *demoCmd, shop *app.App, out *cli.Output) (*demo, error) {
	d := &demo{cmd: cmd, shop: shop, out: out, claims: verdict.NewClaims()}
	d.result = demoResult{Buyers: cmd.Buyers, Stock: cmd.Stock, Copies: cmd.Duplicates, Backends: d.backends()}
	var err error
	if d.tokens, err = cli.NewTokens(shop.JWTKey); err != nil {
		return nil, err
	}
	if d.client, err = loadtest.NewClient(shop.URL(), loadtest.ClientOptions{Token: d.tokens.Of}); err != nil {
		return nil, err
	}
	return d, nil
}

// backends names what the shop runs on.
func (d *demo) backends() string {
	lock := "no lock"
	if d.cmd.Lock.Lock != "none" {
		lock = "the lock in " + d.cmd.Lock.Lock
	}
	if d.cmd.Servers.Embedded() {
		return "SQLite and " + lock + ", all embedded"
	}
	return d.shop.DB.Name() + " " + d.shop.DB.Version() + " and " + lock
}

// run runs the demo, from the sale to the verdict.
func (d *demo) run(ctx context.Context) (*demoResult, error) {
	voucher, err := d.createVoucher("Dinner for two", d.cmd.Stock, 15*time.Minute)
	if err != nil {
		return nil, err
	}
	d.tokens.Prepare(cli.FirstBuyer, d.cmd.Buyers)
	if err := d.sale(ctx, voucher); err != nil {
		return nil, err
	}
	if err := d.cancellations(ctx, voucher); err != nil {
		return nil, err
	}
	if err := d.expiry(ctx); err != nil {
		return nil, err
	}
	return &d.result, d.check(ctx, voucher)
}

// createVoucher puts a voucher on sale; each user may buy one unit.
func (d *demo) createVoucher(title string, stock int64, payWithin time.Duration) (loadtest.Voucher, error) {
	now := time.Now()
	return d.client.CreateVoucher(cli.Admin, loadtest.NewVoucher{
		Title: title, PriceCents: 4900, Stock: stock, UserLimit: 1, PaySeconds: int64(payWithin / time.Second),
		StartsAt: now.Add(-time.Minute), EndsAt: now.Add(24 * time.Hour),
	})
}

// buyers returns the buyers of a voucher. Their answers become claims.
func (d *demo) buyers(voucher loadtest.Voucher) *loadtest.Buyers {
	return &loadtest.Buyers{
		Client: d.client, Recorder: loadtest.NewRecorder(d.claims.Add), Voucher: voucher.ID, FirstUser: cli.FirstBuyer, Users: d.cmd.Buyers,
		Copies: d.cmd.Duplicates, CopyShare: 1, Name: loadtest.NewName(),
	}
}

// sale lets every buyer come once, and resolves unknown outcomes.
func (d *demo) sale(ctx context.Context, voucher loadtest.Voucher) error {
	buyers := d.buyers(voucher)
	stop := cli.ShowProgress(d.out.Stderr, fmt.Sprintf("%d buyers for %d units", d.cmd.Buyers, d.cmd.Stock),
		d.cmd.Buyers*int64(d.cmd.Duplicates), buyers.Recorder)
	load := loadtest.Load{Clients: d.cmd.Clients, Arrivals: d.cmd.Buyers}
	began := time.Now()
	err := buyers.Run(ctx, load, func(a loadtest.Arrival) { d.remember(buyers.Buyer(a.N), buyers.Buy(a)) })
	d.result.Sale = buyers.Recorder.Report()
	stop()
	if err := errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	d.result.SellingTime = max(d.last.Sub(began), 0)
	d.result.Settled = buyers.Settle(ctx, 30*time.Second)
	return nil
}

// remember remembers who got an order, and some of the users who got none.
func (d *demo) remember(user int64, a loadtest.Answer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case a.Outcome.Class() == loadtest.Accepted:
		d.orders = append(d.orders, order{user, a.Order})
		if done := a.Start.Add(a.Took); done.After(d.last) {
			d.last = done
		}
	case a.Outcome == "sold-out" && int64(len(d.soldOut)) < d.cmd.Stock:
		d.soldOut = append(d.soldOut, user)
	}
}

// deliveryTime is how long events may take to be delivered and to take effect after the last order.
const deliveryTime = 15 * time.Second

// check waits until all events have been sent, and checks everything. The last effects may be missing for a moment, so a bad
// verdict is checked again until deliveryTime is over.
func (d *demo) check(ctx context.Context, voucher loadtest.Voucher) error {
	waiting, cancel := context.WithTimeout(ctx, deliveryTime)
	defer cancel()
	_, err := outbox.WaitEmpty(waiting, repository.NewOutbox(d.shop.DB))
	if err != nil && waiting.Err() == nil {
		return err
	}
	for {
		v, err := verdict.Check(ctx, d.shop.DB, d.claims, verdict.Options{Settled: true, Complete: true})
		if err != nil {
			return err
		}
		if v.OK || waiting.Err() != nil {
			d.result.Verdict, d.result.Sold = v, v.Sale(voucher.ID).Live
			d.result.judge()
			return nil
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// pause waits, unless ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}
