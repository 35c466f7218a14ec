package main

import (
	"context"
	"fmt"
	"time"

	"seckill/cmd/internal/reconcile"
	"seckill/loadtest"
	"seckill/repository"
)

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
