package app

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/repository"
)

// bookMetrics show whether the books balance. It is the database's constraints that keep them so; an alert on these
// metrics watches over what cannot happen.
type bookMetrics struct {
	total, stock, live    prometheus.Gauge
	oversold, unaccounted prometheus.Gauge
	read                  prometheus.Gauge
	failures              prometheus.Counter
}

func newBookMetrics(f maker) bookMetrics {
	units := f.gauge("units", "Units of the vouchers on sale, or so of late, in all of the shop: total, stock (left) and live (held by orders).", "state")
	return bookMetrics{
		total: units.WithLabelValues("total"), stock: units.WithLabelValues("stock"), live: units.WithLabelValues("live"),
		oversold:    f.gauge("oversold_units", "Orders beyond the units of their voucher; cannot be anything but 0.").WithLabelValues(),
		unaccounted: f.gauge("unaccounted_units", "By how much total and stock + live differ; cannot be anything but 0.").WithLabelValues(),
		read:        f.gauge("books_read_timestamp_seconds", "When units and outbox were read last; 0: not yet.").WithLabelValues(),
		failures:    f.counter("books_failures_total", "Times that units and outbox could not be read.").WithLabelValues(),
	}
}

// The pace of reading the books: often enough for a graph, and at most a hundredth of the time, unless that would be too
// seldom for an alert.
const (
	bookPause  = 10 * time.Second
	bookRest   = 2 * time.Minute
	bookShare  = 100
	bookRecent = 24 * time.Hour // a unit can come back after the sale, while orders may still be paid
	bookTime   = 30 * time.Second
)

// bookkeeper reads the database for the metrics that no instance can know by itself.
type bookkeeper struct {
	db      *repository.DB
	metrics *metrics
	log     *slog.Logger
}

// startBooks reads them, if somebody asks for metrics.
func (a *App) startBooks(opts *Options, m *metrics) {
	if m.off {
		return
	}
	m.waitLimit.Set(float64(opts.Commit.QueueMax))
	a.stack.run("books", bookkeeper{db: a.DB, metrics: m, log: a.log}.run)
}

// run reads until ctx ends.
func (k bookkeeper) run(ctx context.Context) {
	for {
		start, pause := time.Now(), bookPause
		if err := k.read(ctx); err == nil {
			pause = min(max(bookPause, bookShare*time.Since(start)), bookRest)
		} else if ctx.Err() == nil {
			k.metrics.books.failures.Inc()
			k.log.Warn("the books could not be read for the metrics", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// read reads both, so that trouble with one does not hide the other.
func (k bookkeeper) read(ctx context.Context) error {
	err := errors.Join(k.readOutbox(ctx), k.readUnits(ctx))
	if err == nil {
		k.metrics.books.read.SetToCurrentTime()
	}
	return err
}

func (k bookkeeper) readOutbox(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, bookTime)
	defer cancel()
	backlog, err := repository.NewOutbox(k.db).Health(ctx, 0)
	if err != nil {
		return err
	}
	k.metrics.outboxBacklog(backlog)
	return nil
}

func (k bookkeeper) readUnits(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, bookTime)
	defer cancel()
	balance, err := k.db.StockBalance(ctx, bookRecent)
	if err != nil {
		return err
	}
	m := k.metrics.books
	m.total.Set(float64(balance.Total))
	m.stock.Set(float64(balance.Stock))
	m.live.Set(float64(balance.Live))
	m.oversold.Set(float64(balance.Oversold))
	m.unaccounted.Set(float64(balance.Unaccounted))
	if balance.Oversold != 0 || balance.Unaccounted != 0 {
		k.log.Error("the books do not balance; seckill audit tells more", "oversold", balance.Oversold, "unaccounted", balance.Unaccounted)
	}
	return nil
}
