package main

import (
	"context"
	"fmt"
	"time"

	"seckill/cmd/internal/cli"
	"seckill/loadtest"
)

// keep prints where to look, and runs small sales until ctx ends.
func (d *demo) keep(ctx context.Context, out *cli.Output) {
	text := out.Stdout
	if d.cmd.JSON {
		text = out.Stderr
	}
	guest := int64(cli.FirstBuyer) + d.cmd.Buyers + 1000 // a user without an order
	voucher, err := d.createVoucher("Still on sale", 10, 15*time.Minute)
	if err != nil {
		fmt.Fprintln(out.Stderr, "seckill:", err)
		return
	}
	fmt.Fprintf(text, `
The shop runs until Ctrl-C, with a small sale every minute and a half:

  %[1]s/         buy in a browser
  %[1]s/board    the live board
  %[1]s/docs/    the API. Try:

  TOKEN=%[2]s
  curl -s %[1]s/api/v1/vouchers/%[3]s
  curl -s %[1]s/api/v1/orders -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d '{"voucher_id":"%[3]s"}'
  curl -s %[1]s/api/v1/orders -H "Authorization: Bearer $TOKEN"

With an admin's token, also below /api/v1/admin:

  ADMIN=%[4]s
  curl -s %[1]s/api/v1/admin/audit -H "Authorization: Bearer $ADMIN"
`, d.shop.URL(), d.tokens.Of(guest), voucher.ID, d.tokens.Of(cli.Admin))
	d.smallSales(ctx, guest+1)
	<-ctx.Done()
}

// smallSale is a sale that is announced, sells out, gets units back from buyers who cancel or do not pay, and ends.
type smallSale struct {
	announced time.Duration // before it opens
	open      time.Duration // how long buyers come
	rate      float64       // buyers a second
	users     int64         // after the last one, the first comes again
	units     int64
	pay       time.Duration // time allowed to pay
}

// keptSale gets three requests a second.
var keptSale = smallSale{announced: 20 * time.Second, open: 70 * time.Second, rate: 3, users: 400, units: 60, pay: 25 * time.Second}

// maxSmallSales take about a day.
const maxSmallSales = 1000

// smallSales runs one sale after the other.
func (d *demo) smallSales(ctx context.Context, firstUser int64) {
	titles := []string{"Dinner for two", "Night train to the sea", "Last seats: string quartet", "Espresso machine, refurbished", "周末温泉双人票"}
	for n := range maxSmallSales {
		if err := d.runSmallSale(ctx, keptSale, titles[n%len(titles)], firstUser); err != nil { // for example, a server is down
			_ = pause(ctx, keptSale.announced)
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// runSmallSale announces a sale and sends its buyers.
func (d *demo) runSmallSale(ctx context.Context, s smallSale, title string, firstUser int64) error {
	opens := time.Now().Add(s.announced)
	voucher, err := d.client.CreateVoucher(cli.Admin, loadtest.NewVoucher{
		Title: title, PriceCents: 2900, Stock: s.units, UserLimit: 1, PaySeconds: int64(s.pay / time.Second),
		StartsAt: opens, EndsAt: opens.Add(s.open + s.announced/2),
	})
	if err != nil {
		return err
	}
	if err := pause(ctx, time.Until(opens)); err != nil {
		return err
	}
	name := loadtest.NewName()
	load := loadtest.Load{Clients: 4, Rate: s.rate, Duration: s.open}
	return load.Run(ctx, func(a loadtest.Arrival) {
		user := firstUser + a.N%s.users
		d.payCancelOrForget(user, d.client.Place(user, voucher.ID, fmt.Sprintf("%s-%d", name, a.N)), a.N)
	}, func(loadtest.Arrival) {}) // dropped arrivals do not matter here
}

// payCancelOrForget lets half of the buyers pay and a fifth cancel; the others do nothing.
func (d *demo) payCancelOrForget(user int64, a loadtest.Answer, n int64) {
	if a.Outcome != loadtest.Placed {
		return
	}
	switch dice := n * 7 % 10; {
	case dice < 5:
		d.client.Pay(user, a.Order)
	case dice < 7:
		d.client.Cancel(user, a.Order)
	}
}
