package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"seckill/cmd/internal/app"
	"seckill/cmd/internal/reconcile"
	"seckill/loadtest"
	"seckill/repository"
)

// demo is one telling of the story.
type demo struct {
	cmd    *demoCmd
	shop   *app.App
	out    *output
	tokens *tokens
	client *loadtest.Client
	book   *reconcile.Book // what the clients were told

	mu      sync.Mutex
	bookErr error     // the first entry that could not be
	later   []int64   // some of those who were too late
	orders  []order   // that the sale placed
	last    time.Time // when its last buyer had an order
}

// order is an order as its buyer knows it.
type order struct {
	user int64
	id   string
}

func newDemo(cmd *demoCmd, shop *app.App, out *output) (*demo, error) {
	d := &demo{cmd: cmd, shop: shop, out: out, book: reconcile.NewBook()}
	var err error
	if d.tokens, err = newTokens(shop.JWTKey, 24*time.Hour); err != nil {
		return nil, err
	}
	if d.client, err = loadtest.NewClient(shop.URL(), loadtest.ClientOptions{Token: d.tokens.of}); err != nil {
		return nil, err
	}
	return d, nil
}

// run tells the story from the opening to the verdict.
func (d *demo) run(ctx context.Context) (*demoVerdict, error) {
	v := &demoVerdict{Buyers: d.cmd.Buyers, Stock: d.cmd.Stock, Copies: d.cmd.Duplicates, Backends: d.backends()}
	hot, err := d.createVoucher("Dinner for two", d.cmd.Stock, 15*time.Minute)
	if err != nil {
		return nil, err
	}
	d.tokens.prepare(firstBuyer, d.cmd.Buyers)
	if err := d.sale(ctx, hot, v); err != nil {
		return nil, err
	}
	if err := d.afterSale(ctx, hot, v); err != nil {
		return nil, err
	}
	if err := d.expiry(ctx, v); err != nil {
		return nil, err
	}
	return v, d.prove(ctx, hot, v)
}

// backends names what the shop runs on.
func (d *demo) backends() string {
	lock := "no lock"
	if d.cmd.Lock.Lock != "none" {
		lock = "the lock in " + d.cmd.Lock.Lock
	}
	if d.cmd.Servers.Embedded() {
		return "embedded: SQLite, " + lock + " in this process"
	}
	return d.shop.DB.Name() + " " + d.shop.DB.Version() + ", " + lock
}

// createVoucher puts a voucher on sale that sells one unit to a user.
func (d *demo) createVoucher(title string, stock int64, payWithin time.Duration) (loadtest.Voucher, error) {
	now := time.Now()
	return d.client.CreateVoucher(admin, loadtest.NewVoucher{
		Title: title, PriceCents: 4900, Stock: stock, UserLimit: 1, PaySeconds: int64(payWithin / time.Second),
		StartsAt: now.Add(-time.Minute), EndsAt: now.Add(24 * time.Hour),
	})
}

// recorder returns one whose entries go to the book.
func (d *demo) recorder() *loadtest.Recorder {
	return loadtest.NewRecorder(func(e *loadtest.Entry) {
		if err := d.book.Add(e); err != nil {
			d.mu.Lock()
			defer d.mu.Unlock()
			d.bookErr = errors.Join(d.bookErr, err)
		}
	})
}

func (d *demo) buyers(r *loadtest.Recorder, voucher string) *loadtest.Buyers {
	return &loadtest.Buyers{
		Client: d.client, Recorder: r, Voucher: voucher, FirstUser: firstBuyer, Users: d.cmd.Buyers,
		Copies: d.cmd.Duplicates, CopyShare: 1, Name: loadtest.NewName(),
	}
}

// sale lets every buyer come once, and settles what they could not be told.
func (d *demo) sale(ctx context.Context, hot loadtest.Voucher, v *demoVerdict) error {
	r := d.recorder()
	buyers := d.buyers(r, hot.ID)
	stop := showProgress(d.out.stderr, fmt.Sprintf("%d buyers for %d units", d.cmd.Buyers, d.cmd.Stock), d.cmd.Buyers*int64(d.cmd.Duplicates), r)
	load := loadtest.Load{Clients: d.cmd.Clients, Arrivals: d.cmd.Buyers}
	began := time.Now()
	err := load.Run(ctx, func(a loadtest.Arrival) { d.note(buyers.Buyer(a.N), buyers.Buy(a)) }, nil)
	v.Sale = r.Report()
	stop()
	if err := errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	v.SellingTime = max(d.last.Sub(began), 0)
	if unknown := r.TakeUnknown(); len(unknown) > 0 {
		settling, cancel := context.WithTimeout(ctx, 30*time.Second)
		defer cancel()
		v.Settled = loadtest.Settle(settling, d.client, d.recorder(), unknown)
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

// afterSale lets half of the orders be paid and a quarter be cancelled, and those who were too late come again: they
// must get what was cancelled.
func (d *demo) afterSale(ctx context.Context, hot loadtest.Voucher, v *demoVerdict) error {
	buyers := d.buyers(d.recorder(), hot.ID)
	all := int64(len(d.orders))
	v.Paid, v.Cancelled = (all+1)/2, all/4
	v.Pending = all - v.Paid - v.Cancelled
	var failed atomic.Pointer[error]
	changes := loadtest.Load{Clients: d.cmd.Clients, Arrivals: max(v.Paid+v.Cancelled, 1)}
	err := changes.Run(ctx, func(a loadtest.Arrival) {
		if err := d.change(buyers, a.N, v.Paid); err != nil {
			failed.Store(&err)
		}
	}, nil)
	if cause := failed.Load(); cause != nil {
		err = *cause
	}
	if err := errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	began := time.Now()
	again, err := d.comeAgain(ctx, buyers, d.later, v.Cancelled)
	v.Resold, v.ResoldIn = again, time.Since(began)
	v.Resalable = min(v.Cancelled, int64(len(d.later)))
	return err
}

// change pays the n-th order, if it is one of those to be paid, or cancels it.
func (d *demo) change(buyers *loadtest.Buyers, n, toPay int64) error {
	if n >= int64(len(d.orders)) {
		return nil
	}
	o, change := d.orders[n], buyers.Pay
	if n >= toPay {
		change = buyers.Cancel
	}
	if a := change(o.user, o.id); a.Outcome != loadtest.Done {
		return fmt.Errorf("order %s of user %d could not be changed: %s", o.id, o.user, a.Outcome)
	}
	return nil
}

// comeAgain lets users try again until units of them are served or two seconds are over: a returned unit must be for
// sale by then.
func (d *demo) comeAgain(ctx context.Context, buyers *loadtest.Buyers, users []int64, units int64) (served int64, err error) {
	deadline := time.Now().Add(2 * time.Second)
	for i, user := range users {
		if served == units {
			break
		}
		for try := 0; ; try++ {
			a := d.client.Place(user, buyers.Voucher, "")
			buyers.Recorder.Record(loadtest.OpPlace, user, buyers.Voucher, "", &a, a.Start)
			if a.Outcome == loadtest.Placed {
				served++
				break
			}
			if time.Now().After(deadline) {
				return served, nil
			}
			if err := pause(ctx, 20*time.Millisecond); err != nil {
				return served, fmt.Errorf("buyer %d of those who come again: %w", i, err)
			}
		}
	}
	return served, nil
}

// expiry sells a few units that have to be paid within a second, of which half are: the others must come back by
// themselves.
func (d *demo) expiry(ctx context.Context, v *demoVerdict) error {
	units := min(max(d.cmd.Stock/10, 2), 20)
	short, err := d.createVoucher("Pay within a second", units, time.Second)
	if err != nil {
		return err
	}
	v.ShortStock = units
	r := d.recorder()
	buyers := d.buyers(r, short.ID)
	buyers.Users = units
	for n := range units {
		a := buyers.Buy(loadtest.Arrival{N: n})
		if a.Outcome.Class() != loadtest.Accepted {
			return fmt.Errorf("buyer %d of %d units was refused: %s", n, units, a.Outcome)
		}
		if n%2 == 0 {
			if p := buyers.Pay(buyers.Buyer(n), a.Order); p.Outcome != loadtest.Done {
				return fmt.Errorf("order %s could not be paid in time: %s", a.Order, p.Outcome)
			}
			v.ShortPaid++
		}
	}
	v.Expired = units - v.ShortPaid
	if err := pause(ctx, time.Second); err != nil {
		return err
	}
	began := time.Now()
	late := make([]int64, v.Expired)
	for i := range late {
		late[i] = buyers.FirstUser + units + int64(i)
	}
	v.ExpiredResold, err = d.comeAgain(ctx, buyers, late, v.Expired)
	v.ExpiredResoldIn = time.Since(began)
	return err
}

// prove waits until everything has been delivered, and holds all books against each other.
func (d *demo) prove(ctx context.Context, hot loadtest.Voucher, v *demoVerdict) error {
	if d.bookErr != nil {
		return fmt.Errorf("the shop answered what no shop does: %w", d.bookErr)
	}
	if err := d.delivered(ctx); err != nil {
		return err
	}
	clients, err := d.book.Check(ctx, d.shop.DB, reconcile.Options{Whole: true})
	if err != nil {
		return err
	}
	v.Clients = clients
	for _, s := range clients.Sales {
		if s.Voucher.String() == hot.ID {
			v.Sold, v.DuplicateOrders = s.Live, s.Duplicates
		}
	}
	if v.Audit, err = d.audit(ctx); err != nil {
		return err
	}
	v.judge()
	return nil
}

// deliveryTime is how long events may take to be delivered, and their effects to be booked, after the last order.
const deliveryTime = 15 * time.Second

// delivered waits until the outbox is empty.
func (d *demo) delivered(ctx context.Context) error {
	deadline := time.Now().Add(deliveryTime)
	for {
		n, err := d.shop.DB.Unsent(ctx)
		if err != nil || n == 0 || time.Now().After(deadline) { // what is left then, the audit will name
			return err
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// audit audits. The last effects may be on their way when the last event is sent, so a bad verdict has a second chance
// until the time is over.
func (d *demo) audit(ctx context.Context) (repository.Audit, error) {
	deadline := time.Now().Add(deliveryTime)
	for {
		audit, err := d.shop.DB.Audit(ctx, repository.AuditOptions{Settled: true})
		if err != nil || audit.OK || time.Now().After(deadline) {
			return audit, err
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return audit, err
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
