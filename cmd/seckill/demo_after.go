package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"seckill/loadtest"
)

// afterSale lets half of the orders be paid and a quarter be cancelled, and those who were too late come again: they
// must get what was cancelled.
func (d *demo) afterSale(ctx context.Context, hot loadtest.Voucher, result *demoResult) error {
	buyers := d.buyers(d.recorder(), hot.ID)
	all := int64(len(d.orders))
	result.Paid, result.Cancelled = (all+1)/2, all/4
	result.Pending = all - result.Paid - result.Cancelled
	var failed atomic.Pointer[error]
	changes := loadtest.Load{Clients: d.cmd.Clients, Arrivals: max(result.Paid+result.Cancelled, 1)}
	err := changes.Run(ctx, func(a loadtest.Arrival) {
		if err := d.change(buyers, a.N, result.Paid); err != nil {
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
	again, err := d.comeAgain(ctx, buyers, d.later, result.Cancelled)
	result.Resold, result.ResoldIn = again, time.Since(began)
	result.Resalable = min(result.Cancelled, int64(len(d.later)))
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
func (d *demo) expiry(ctx context.Context, result *demoResult) error {
	units := min(max(d.cmd.Stock/10, 2), 20)
	short, err := d.createVoucher("Pay within a second", units, time.Second)
	if err != nil {
		return err
	}
	result.ShortStock = units
	r := d.recorder()
	buyers := d.buyers(r, short.ID)
	buyers.Users = units
	for n := range units {
		a := buyers.Buy(loadtest.Arrival{N: n})
		if a.Outcome.Class() != loadtest.Accepted {
			return fmt.Errorf("buyer %d of %d units was refused: %s", n, units, a.Outcome)
		}
		if n%2 == 1 {
			continue
		}
		switch p := buyers.Pay(buyers.Buyer(n), a.Order); p.Outcome {
		case loadtest.Done:
			result.ShortPaid++
		case "order-closed": // this machine was too busy to pay within a second; so be it
		default:
			return fmt.Errorf("order %s could not be paid: %s", a.Order, p.Outcome)
		}
	}
	result.Expired = units - result.ShortPaid
	if err := pause(ctx, time.Second); err != nil {
		return err
	}
	began := time.Now()
	late := make([]int64, result.Expired)
	for i := range late {
		late[i] = buyers.FirstUser + units + int64(i)
	}
	result.ExpiredResold, err = d.comeAgain(ctx, buyers, late, result.Expired)
	result.ExpiredResoldIn = time.Since(began)
	return err
}
