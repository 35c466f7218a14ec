package app

import (
	"context"
	"sync/atomic"
	"time"

	"seckill/repository"
)

// stockCheck reads for metrics and board what no instance knows alone: the units of the whole shop, and its outbox.
// The database's constraints keep stock and orders in balance; an alert on these metrics watches for what cannot happen.
type stockCheck struct {
	db *repository.DB
	*observer

	outboxRead atomic.Bool // whether the last reading of the outbox succeeded
}

// startStockCheck reads units and outbox until Close.
func (a *App) startStockCheck() {
	c := &stockCheck{db: a.DB, observer: a.observer}
	a.stack.run("outbox check", func(ctx context.Context) { c.repeat(ctx, outboxPause, c.readOutbox) })
	a.stack.run("stock check", func(ctx context.Context) { c.repeat(ctx, unitsPause, c.readUnits) })
}

const (
	unitsPause  = 10 * time.Second
	outboxPause = 500 * time.Millisecond
	longestRest = 2 * time.Minute // or alerts would come late
	checkLimit  = 30 * time.Second
	// recentSales are checked after their end too: a unit can come back while orders may still be paid.
	recentSales = 24 * time.Hour
)

// repeat reads until ctx ends, at most a twentieth of the time unless that would be too seldom for an alert.
func (c *stockCheck) repeat(ctx context.Context, pause time.Duration, read func(context.Context) error) {
	for {
		start := time.Now()
		limited, cancel := context.WithTimeout(ctx, checkLimit)
		err := read(limited)
		cancel()
		rest := min(max(pause, 20*time.Since(start)), longestRest)
		if err != nil && ctx.Err() == nil {
			rest = unitsPause
			c.checkFailures.Inc()
			c.log.Warn("units or outbox could not be read for the metrics", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(rest):
		}
	}
}

func (c *stockCheck) readOutbox(ctx context.Context) error {
	// Events of any age count as stale here, so Oldest is the age of the oldest of all.
	h, err := repository.NewOutbox(c.db).Health(ctx, 0)
	c.outboxRead.Store(err == nil)
	if err != nil {
		return err
	}
	c.outboxEvents.WithLabelValues("pending").Set(float64(h.Pending))
	c.outboxEvents.WithLabelValues("failed").Set(float64(h.Failed))
	c.outboxOldest.Set(h.Oldest.Seconds())
	return nil
}

func (c *stockCheck) readUnits(ctx context.Context) error {
	balance, err := c.db.StockBalance(ctx, recentSales)
	if err != nil {
		return err
	}
	c.units.WithLabelValues("total").Set(float64(balance.Total))
	c.units.WithLabelValues("stock").Set(float64(balance.Stock))
	c.units.WithLabelValues("live").Set(float64(balance.Live))
	c.oversold.Set(float64(balance.Oversold))
	c.unaccounted.Set(float64(balance.Unaccounted))
	if c.outboxRead.Load() {
		c.checkedAt.SetToCurrentTime()
	}
	if balance.Oversold != 0 || balance.Unaccounted != 0 {
		c.log.Error("stock and orders do not balance; run seckill audit", "oversold", balance.Oversold, "unaccounted", balance.Unaccounted)
	}
	return nil
}
