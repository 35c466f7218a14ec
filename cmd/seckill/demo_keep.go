package main

import (
	"context"
	"fmt"
	"time"

	"seckill/cmd/internal/cli"
	"seckill/loadtest"
)

// keep leaves the shop up until ctx ends, and something going on in it.
func (d *demo) keep(ctx context.Context, out *cli.Output) {
	text := out.Stdout
	if d.cmd.JSON {
		text = out.Stderr
	}
	guest := int64(cli.FirstBuyer) + d.cmd.Buyers + 1000 // has not ordered yet
	voucher, err := d.createVoucher("Still on sale", 10, 15*time.Minute)
	if err != nil {
		fmt.Fprintln(out.Stderr, "seckill:", err)
		return
	}
	fmt.Fprintf(text, `
The shop stays until Ctrl-C, with a small sale every minute and a half:

  %[1]s/         buy in a browser
  %[1]s/board    see what happens
  %[1]s/docs/    its API. Try:

  TOKEN=%[2]s
  curl -s %[1]s/api/v1/vouchers/%[3]s
  curl -s %[1]s/api/v1/orders -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' -d '{"voucher_id":"%[3]s"}'
  curl -s %[1]s/api/v1/orders -H "Authorization: Bearer $TOKEN"

An admin's token, for what is below /api/v1/admin:

  ADMIN=%[4]s
  curl -s %[1]s/api/v1/admin/audit -H "Authorization: Bearer $ADMIN"
`, d.shop.URL(), d.tokens.Of(guest), voucher.ID, d.tokens.Of(cli.Admin))
	d.scenes(ctx, guest+1)
	<-ctx.Done()
}

// scene is a small sale that is announced, sells out, gets units back from buyers who cancel or do not pay in time, and
// ends.
type scene struct {
	announced time.Duration // before it opens
	open      time.Duration // how long buyers come
	rate      float64       // buyers a second
	users     int64         // who take turns
	units     int64
	pay       time.Duration // time allowed to pay
}

// keptScene takes three requests a second.
var keptScene = scene{announced: 20 * time.Second, open: 70 * time.Second, rate: 3, users: 400, units: 60, pay: 25 * time.Second}

// mostScenes is about a day of them.
const mostScenes = 1000

// scenes plays one after the other. They are there to be looked at: what buyers are answered, the board tells.
func (d *demo) scenes(ctx context.Context, firstUser int64) {
	titles := []string{"Dinner for two", "Night train to the sea", "Last seats: string quartet", "Espresso machine, refurbished", "周末温泉双人票"}
	for n := range mostScenes {
		if err := d.play(ctx, keptScene, titles[n%len(titles)], firstUser); err != nil { // a server is away, say
			_ = pause(ctx, keptScene.announced)
		}
		if ctx.Err() != nil {
			return
		}
	}
}

// play plays a scene, unless the shop refuses it.
func (d *demo) play(ctx context.Context, s scene, title string, firstUser int64) error {
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
		d.decide(user, d.client.Place(user, voucher.ID, fmt.Sprintf("%s-%d", name, a.N)), a.N)
	}, func(loadtest.Arrival) {}) // who finds no one to serve them goes away
}

// decide has most buyers pay, some cancel, and the others forget it, in an order that looks like none.
func (d *demo) decide(user int64, a loadtest.Answer, n int64) {
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
