package app

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"seckill/handler/board"
	"seckill/handler/consumer"
	"seckill/service"
	"seckill/service/idgen"
	"seckill/service/lock"
)

// metrics turns what the parts report into Prometheus metrics. No label takes a value that a client chooses, and what
// can be counted is there from the start: rate() does not see the first event of a counter that comes with it.
type metrics struct {
	registry *prometheus.Registry
	meter    *board.Meter // of the live board, which gets the same reports

	http      *httpMetrics
	orders    map[service.Code]timed
	batches   batchMetrics
	waiting   prometheus.Gauge
	waitLimit prometheus.Gauge
	expired   prometheus.Counter
	locks     map[lock.Outcome]timed
	breakers  map[string]breakerMetrics
	ids       map[idgen.EventKind]prometheus.Counter
	outbox    relayMetrics
	consumed  map[delivery]timed
	books     bookMetrics

	off  bool        // nobody wants to know: what is on the way of orders is not counted
	away atomic.Bool // the broker, when it was last heard of
}

// timed counts something and the time that it takes.
type timed struct {
	total   prometheus.Counter
	seconds prometheus.Observer
}

func (t timed) observe(took time.Duration) {
	t.total.Inc()
	t.seconds.Observe(took.Seconds())
}

// maker makes metrics of one registry, under the shop's name.
type maker struct{ promauto.Factory }

// seconds are buckets from 0.1 ms to 10 s.
var seconds = prometheus.ExponentialBucketsRange(0.0001, 10, 16)

func (f maker) counter(name, help string, labels ...string) *prometheus.CounterVec {
	return f.NewCounterVec(prometheus.CounterOpts{Name: "seckill_" + name, Help: help}, labels)
}

func (f maker) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	return f.NewGaugeVec(prometheus.GaugeOpts{Name: "seckill_" + name, Help: help}, labels)
}

func (f maker) histogram(name, help string, labels ...string) *prometheus.HistogramVec {
	return f.sized(name, help, seconds, labels...)
}

func (f maker) sized(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	return f.NewHistogramVec(prometheus.HistogramOpts{Name: "seckill_" + name, Help: help, Buckets: buckets}, labels)
}

func newMetrics() *metrics {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	f := maker{promauto.With(r)}
	m := &metrics{
		registry:  r,
		meter:     board.NewMeter(),
		http:      newHTTPMetrics(f),
		orders:    newOrderMetrics(f),
		batches:   newBatchMetrics(f),
		waiting:   f.gauge("commit_waiting_orders", "Orders that wait for a batch.").WithLabelValues(),
		waitLimit: f.gauge("commit_waiting_orders_limit", "Most orders that may wait; more are refused.").WithLabelValues(),
		expired:   f.counter("orders_expired_total", "Unpaid orders that were closed.").WithLabelValues(),
		locks:     newLockMetrics(f),
		breakers:  newBreakerMetrics(f),
		ids:       newIDMetrics(f),
		outbox:    newRelayMetrics(f),
		consumed:  newConsumedMetrics(f),
		books:     newBookMetrics(f),
	}
	f.buildInfo()
	return m
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// gauge adds one that is read when metrics are asked for.
func (m *metrics) gauge(name, help string, value func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "seckill_" + name, Help: help}, value))
}

// counter adds one that somebody else counts.
func (m *metrics) counter(name, help string, value func() float64) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "seckill_" + name, Help: help}, value))
}

// breakerMetrics are those of one breaker.
type breakerMetrics struct {
	open   prometheus.Gauge
	opened prometheus.Counter
}

func newBreakerMetrics(f maker) map[string]breakerMetrics {
	open := f.gauge("breaker_open", "1 while a breaker leaves its servers alone.", "breaker")
	opened := f.counter("breaker_opened_total", "Times that a breaker found its servers to be away.", "breaker")
	breakers := map[string]breakerMetrics{}
	for _, name := range []string{"lock", "broker"} {
		breakers[name] = breakerMetrics{open.WithLabelValues(name), opened.WithLabelValues(name)}
	}
	return breakers
}

// breaker takes a report of how a breaker is. It may come again without a change.
func (m *metrics) breaker(name string, open, turned bool) {
	b := m.breakers[name]
	if !open {
		b.open.Set(0)
		return
	}
	b.open.Set(1)
	if turned {
		b.opened.Inc()
	}
}

// delivery is what a consumer made of an event.
type delivery struct {
	group  string
	result consumer.Result
}

func newConsumedMetrics(f maker) map[delivery]timed {
	total := f.counter("consumed_total", "Deliveries to consumers, by result.", "consumer", "result")
	duration := f.histogram("consume_duration_seconds", "Time to handle a delivery.", "consumer")
	consumed := map[delivery]timed{}
	for _, group := range []string{pointsGroup, notificationGroup} {
		for _, result := range []consumer.Result{consumer.Took, consumer.Duplicate, consumer.Ignored, consumer.Failed, consumer.Poison} {
			consumed[delivery{group, result}] = timed{total.WithLabelValues(group, string(result)), duration.WithLabelValues(group)}
		}
	}
	return consumed
}

// Consumed implements consumer.Observer.
func (m *metrics) Consumed(group string, result consumer.Result, took time.Duration) {
	m.consumed[delivery{group, result}].observe(took)
}
