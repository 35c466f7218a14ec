package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"seckill/loadtest"
)

// cancellations pays half of the orders and cancels a quarter. Then users who were told "sold out" try again: they must get
// the cancelled units.
func (d *demo) cancellations(ctx context.Context, voucher loadtest.Voucher) error {
	r, buyers, all := &d.result, d.buyers(voucher), int64(len(d.orders))
	r.Paid, r.Cancelled = (all+1)/2, all/4
	r.Pending = all - r.Paid - r.Cancelled
	var failed atomic.Pointer[error]
	load := loadtest.Load{Clients: d.cmd.Clients, Arrivals: max(r.Paid+r.Cancelled, 1)}
	err := buyers.Run(ctx, load, func(a loadtest.Arrival) {
		if err := d.payOrCancel(buyers, a.N); err != nil {
			failed.Store(&err)
		}
	})
	if cause := failed.Load(); cause != nil {
		err = *cause
	}
	if err := errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	began := time.Now()
	r.Resold, err = d.tryAgain(ctx, buyers, d.soldOut, r.Cancelled)
	r.ResoldIn, r.Resalable = time.Since(began), min(r.Cancelled, int64(len(d.soldOut)))
	return err
}

// payOrCancel changes the n-th order: the first ones are paid, the others cancelled.
func (d *demo) payOrCancel(buyers *loadtest.Buyers, n int64) error {
	if n >= int64(len(d.orders)) {
		return nil
	}
	o, change := d.orders[n], buyers.Pay
	if n >= d.result.Paid {
		change = buyers.Cancel
	}
	if a := change(o.user, o.id); a.Outcome != loadtest.Done {
		return fmt.Errorf("order %s of user %d could not be changed: %s", o.id, o.user, a.Outcome)
	}
	return nil
}

// tryAgain lets users order until they got units orders, or until two seconds are over: returned units must be on sale by
// then.
func (d *demo) tryAgain(ctx context.Context, buyers *loadtest.Buyers, users []int64, units int64) (placed int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	for _, user := range users[:min(units, int64(len(users)))] {
		for {
			a := d.client.Place(user, buyers.Voucher, "")
			buyers.Recorder.Record(loadtest.OpPlace, user, buyers.Voucher, "", &a, a.Start)
			if a.Outcome == loadtest.Placed {
				placed++
				break
			}
			if err := pause(ctx, 20*time.Millisecond); errors.Is(err, context.DeadlineExceeded) {
				return placed, nil
			} else if err != nil {
				return placed, err
			}
		}
	}
	return placed, nil
}

// expiry sells a few units that have to be paid within a second, and pays half of them. The shop must sell the others again.
func (d *demo) expiry(ctx context.Context) error {
	r, units := &d.result, min(max(d.cmd.Stock/10, 2), 20)
	voucher, err := d.createVoucher("Pay within a second", units, time.Second)
	if err != nil {
		return err
	}
	r.ShortStock = units
	buyers := d.buyers(voucher)
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
			r.ShortPaid++
		case "order-closed": // this machine was too busy to pay within a second
		default:
			return fmt.Errorf("order %s could not be paid: %s", a.Order, p.Outcome)
		}
	}
	r.Expired = units - r.ShortPaid
	if err := pause(ctx, time.Second); err != nil {
		return err
	}
	began := time.Now()
	others := make([]int64, r.Expired)
	for i := range others {
		others[i] = buyers.FirstUser + units + int64(i)
	}
	r.ExpiredResold, err = d.tryAgain(ctx, buyers, others, r.Expired)
	r.ExpiredResoldIn = time.Since(began)
	return err
}
