package main

import (
	"context"
	"time"

	"seckill/cmd/internal/verdict"
	"seckill/loadtest"
	"seckill/repository"
	"seckill/service/outbox"
)

// deliveryTime bounds how long events may take to be delivered, and to take effect, after the last order.
const deliveryTime = 15 * time.Second

// prove waits until every event has taken effect, and checks everything. The last effects may still be on their way when
// the last event is marked as sent, so a bad verdict is checked again until deliveryTime is over.
func (d *demo) prove(ctx context.Context, hot loadtest.Voucher, result *demoResult) error {
	if err := d.delivered(ctx); err != nil {
		return err
	}
	deadline := time.Now().Add(deliveryTime)
	for {
		v, err := verdict.Check(ctx, d.shop.DB, d.claims, verdict.Options{Settled: true, Complete: true})
		if err != nil {
			return err
		}
		if v.OK || time.Now().After(deadline) {
			result.Verdict, result.Sold = v, v.Sale(hot.ID).Live
			result.judge()
			return nil
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// delivered waits until every event was sent. If that takes too long, the verdict will say so.
func (d *demo) delivered(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, deliveryTime)
	defer cancel()
	_, err := outbox.WaitEmpty(waiting, repository.NewOutbox(d.shop.DB))
	if waiting.Err() != nil {
		return context.Cause(ctx)
	}
	return err
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
