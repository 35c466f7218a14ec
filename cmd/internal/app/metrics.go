package app

import (
	"log/slog"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"seckill/handler/board"
	"seckill/handler/consumer"
	"seckill/repository"
	"seckill/service"
	"seckill/service/idgen"
	"seckill/service/lock"
	"seckill/service/outbox"
)

// metrics turns what the parts report into Prometheus metrics. No label takes a value that a client chooses.
type metrics struct {
	registry *prometheus.Registry
	meter    *board.Meter // of the live board, which gets the same reports

	httpRequests *prometheus.CounterVec
	httpDuration *prometheus.HistogramVec
	orders       *prometheus.CounterVec
	orderTime    *prometheus.HistogramVec
	batchOrders  prometheus.Histogram
	batchTime    prometheus.Observer
	waiting      prometheus.Gauge
	expired      prometheus.Counter
	locks        *prometheus.CounterVec
	lockTime     *prometheus.HistogramVec
	breakers     *prometheus.GaugeVec
	ids          *prometheus.CounterVec
	outboxEvents *prometheus.CounterVec
	outboxAge    prometheus.Observer
	outboxFaults prometheus.Counter
	consumed     *prometheus.CounterVec

	outboxBacklog *prometheus.GaugeVec
	outboxOldest  prometheus.Gauge
	away          atomic.Bool // the broker, when it was last heard of
}

// seconds are buckets from 0.1 ms to 10 s.
var seconds = prometheus.ExponentialBucketsRange(0.0001, 10, 16)

func newMetrics() *metrics {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	f := promauto.With(r)
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return f.NewCounterVec(prometheus.CounterOpts{Name: "seckill_" + name, Help: help}, labels)
	}
	histogram := func(name, help string, labels ...string) *prometheus.HistogramVec {
		return f.NewHistogramVec(prometheus.HistogramOpts{Name: "seckill_" + name, Help: help, Buckets: seconds}, labels)
	}
	return &metrics{
		registry:     r,
		meter:        board.NewMeter(),
		httpRequests: counter("http_requests_total", "Answered HTTP requests.", "method", "route", "status"),
		httpDuration: histogram("http_request_duration_seconds", "Time to answer an HTTP request.", "method", "route"),
		orders:       counter("orders_total", "Requests to place an order, by what became of them.", "outcome"),
		orderTime:    histogram("order_duration_seconds", "Time to answer a request to place an order.", "outcome"),
		batchOrders: f.NewHistogram(prometheus.HistogramOpts{
			Name: "seckill_commit_batch_orders", Help: "Orders in one batch.", Buckets: prometheus.ExponentialBuckets(1, 2, 12),
		}),
		batchTime:    histogram("commit_duration_seconds", "Time that the database took for one batch.").WithLabelValues(),
		waiting:      f.NewGauge(prometheus.GaugeOpts{Name: "seckill_commit_waiting_orders", Help: "Orders that wait for a batch."}),
		expired:      counter("orders_expired_total", "Unpaid orders that were closed.").WithLabelValues(),
		locks:        counter("locks_total", "Locks asked for, by outcome, and those that were lost.", "outcome"),
		lockTime:     histogram("lock_duration_seconds", "Time to acquire a lock; for outcome lost, the time that it was held.", "outcome"),
		breakers:     f.NewGaugeVec(prometheus.GaugeOpts{Name: "seckill_breaker_open", Help: "1 while a breaker leaves its servers alone."}, []string{"breaker"}),
		ids:          counter("ids_events_total", "What the id generator met on its way.", "event"),
		outboxEvents: counter("outbox_events_total", "Events handed to the broker, by outcome.", "outcome"),
		outboxAge:    histogram("outbox_age_seconds", "Time from the commit of an event until it was marked as sent.").WithLabelValues(),
		outboxFaults: counter("outbox_store_failures_total", "Failures of the relay to reach the database.").WithLabelValues(),
		consumed:     counter("consumed_total", "Deliveries to consumers, by result.", "consumer", "result"),

		outboxBacklog: f.NewGaugeVec(prometheus.GaugeOpts{Name: "seckill_outbox_events", Help: "Events that are not sent, as the monitor saw them last: pending, stale (pending for too long) and failed."}, []string{"state"}),
		outboxOldest:  f.NewGauge(prometheus.GaugeOpts{Name: "seckill_outbox_oldest_seconds", Help: "Age of the oldest stale event, as the monitor saw it last."}),
	}
}

// watch adds what is read when metrics are asked for.
func (m *metrics) watch(db *repository.DB) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "seckill_db_connections_in_use", Help: "Connections to the database that are in use.",
	}, func() float64 { return float64(db.Stats().InUse) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "seckill_db_connection_wait_seconds_total", Help: "Time that was spent on waiting for a connection to the database.",
		}, func() float64 { return db.Stats().WaitDuration.Seconds() }))
}

func (m *metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

func (m *metrics) request(method, route string, status int, took time.Duration) {
	if route == "" {
		route, method = "unmatched", "any"
	}
	m.httpRequests.WithLabelValues(method, route, strconv.Itoa(status)).Inc()
	m.httpDuration.WithLabelValues(method, route).Observe(took.Seconds())
}

func (m *metrics) locked(outcome lock.Outcome, took time.Duration) {
	m.locks.WithLabelValues(outcome.String()).Inc()
	m.lockTime.WithLabelValues(outcome.String()).Observe(took.Seconds())
}

func (m *metrics) breaker(name string, open bool) {
	value := 0.0
	if open {
		value = 1
	}
	m.breakers.WithLabelValues(name).Set(value)
}

func (m *metrics) idEvent(e idgen.Event) { m.ids.WithLabelValues(e.Kind.String()).Inc() }

func (m *metrics) consumedEvent(group string, result consumer.Result, _ time.Duration) {
	m.consumed.WithLabelValues(group, string(result)).Inc()
}

// orderMetrics is the service.Observer.
type orderMetrics struct{ *metrics }

var _ service.Observer = orderMetrics{}

func (m orderMetrics) Answered(code service.Code, took time.Duration) {
	outcome := string(code)
	if outcome == "" {
		outcome = "placed"
	}
	m.orders.WithLabelValues(outcome).Inc()
	m.orderTime.WithLabelValues(outcome).Observe(took.Seconds())
}

func (m orderMetrics) Committed(orders int, took time.Duration) {
	m.batchOrders.Observe(float64(orders))
	m.batchTime.Observe(took.Seconds())
}

func (m orderMetrics) Waiting(orders int) { m.waiting.Set(float64(orders)) }
func (m orderMetrics) Expired(orders int) { m.expired.Add(float64(orders)) }

// outboxMetrics is the outbox.Observer.
type outboxMetrics struct {
	*metrics
	log *slog.Logger
}

var _ outbox.Observer = outboxMetrics{}

func (m outboxMetrics) Claimed(int, time.Duration) {}

func (m outboxMetrics) Published(o outbox.Outcome, _ time.Duration) {
	m.outboxEvents.WithLabelValues("sent").Add(float64(o.Sent))
	m.outboxEvents.WithLabelValues("refused").Add(float64(o.Refused))
	m.outboxEvents.WithLabelValues("unknown").Add(float64(o.Unknown))
	m.outboxEvents.WithLabelValues("away").Add(float64(o.Away))
}

func (m outboxMetrics) Sent(_ outbox.Event, age time.Duration) { m.outboxAge.Observe(age.Seconds()) }

func (m outboxMetrics) GaveUp(e outbox.Event, err error) {
	m.log.Error("an event was given up; seckill outbox retry brings it back", "event", e.ID, "type", e.Type, "order", e.Key, "error", err)
}

func (m outboxMetrics) Paused(d time.Duration) {
	if d > 0 != m.away.Swap(d > 0) {
		if d > 0 {
			m.log.Warn("the broker is away; events wait in the outbox")
		} else {
			m.log.Info("the broker is back")
		}
	}
	m.breaker("broker", d > 0)
}

func (m outboxMetrics) Failed(err error) {
	m.outboxFaults.Inc()
	m.log.Warn("the relay cannot reach the database; it tries again", "error", err)
}

// outboxHealth takes the monitor's readings.
func (m *metrics) outboxHealth(h outbox.Health) {
	m.outboxBacklog.WithLabelValues("pending").Set(float64(h.Pending))
	m.outboxBacklog.WithLabelValues("failed").Set(float64(h.Failed))
	m.outboxBacklog.WithLabelValues("stale").Set(float64(h.Stale))
	m.outboxOldest.Set(h.Oldest.Seconds())
}
