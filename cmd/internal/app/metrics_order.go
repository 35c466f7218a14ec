package app

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/service"
	"seckill/service/lock"
)

// orderMetrics is the service.Observer.
type orderMetrics struct{ *metrics }

var _ service.Observer = orderMetrics{}

// orderCodes are what a request to place an order may come to; CodeInternal stands for any other.
var orderCodes = []service.Code{
	"", service.CodeReplayed, service.CodeInvalid, service.CodeNotFound, service.CodeNotStarted, service.CodeEnded,
	service.CodeSoldOut, service.CodeAlreadyOrdered, service.CodeInProgress, service.CodeKeyReused, service.CodeBusy,
	service.CodeUnavailable, service.CodeUnknown, service.CodeInternal,
}

func newOrderMetrics(f maker) map[service.Code]timed {
	total := f.counter("orders_total", "Requests to place an order, by what became of them.", "outcome")
	duration := f.histogram("order_duration_seconds", "Time to answer a request to place an order.", "outcome")
	orders := map[service.Code]timed{}
	for _, code := range orderCodes {
		outcome := string(code)
		if code == "" {
			outcome = "placed"
		}
		orders[code] = timed{total.WithLabelValues(outcome), duration.WithLabelValues(outcome)}
	}
	return orders
}

// batchMetrics are those of the commits.
type batchMetrics struct {
	orders, seconds prometheus.Observer
}

func newBatchMetrics(f maker) batchMetrics {
	return batchMetrics{
		orders:  f.sized("commit_batch_orders", "Orders in one batch.", prometheus.ExponentialBuckets(1, 2, 12)).WithLabelValues(),
		seconds: f.histogram("commit_duration_seconds", "Time that the database took for one batch.").WithLabelValues(),
	}
}

func (m orderMetrics) Answered(code service.Code, took time.Duration) {
	if m.off {
		return
	}
	t, known := m.orders[code]
	if !known {
		t = m.orders[service.CodeInternal]
	}
	t.observe(took)
}

func (m orderMetrics) Committed(orders int, took time.Duration) {
	if m.off {
		return
	}
	m.batches.orders.Observe(float64(orders))
	m.batches.seconds.Observe(took.Seconds())
}

func (m orderMetrics) Waiting(orders int) { m.waiting.Set(float64(orders)) }
func (m orderMetrics) Expired(orders int) { m.expired.Add(float64(orders)) }

func newLockMetrics(f maker) map[lock.Outcome]timed {
	total := f.counter("locks_total", "Locks asked for, by outcome, and those that were lost.", "outcome")
	duration := f.histogram("lock_duration_seconds", "Time to acquire a lock; for outcome lost, the time that it was held.", "outcome")
	locks := map[lock.Outcome]timed{}
	for outcome := lock.Granted; outcome <= lock.Lost; outcome++ {
		locks[outcome] = timed{total.WithLabelValues(outcome.String()), duration.WithLabelValues(outcome.String())}
	}
	return locks
}

func (m *metrics) locked(outcome lock.Outcome, took time.Duration) {
	if !m.off {
		m.locks[outcome].observe(took)
	}
}
