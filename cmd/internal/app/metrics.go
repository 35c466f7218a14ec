package app

import (
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"

	"seckill/handler/consumer"
	"seckill/repository"
	"seckill/service"
	"seckill/service/idgen"
	"seckill/service/lock"
)

// metrics are the Prometheus metrics of the shop. All are defined in this file. Values come from observer.go (events of the
// shop), stock_check.go (the database's units and outbox), and the add methods below, which read statistics at each scrape.
//
// To add a metric, add a field here, define it in newMetrics, and set it where it happens; if its labels have known values,
// add them to createSeries.
//
// No label takes a value that a client chooses. Every series that can be known exists from the start, because rate() does
// not see the first event of a counter that appears with it.
type metrics struct {
	registry *prometheus.Registry // without the metrics of Go and the process, which /metrics serves too

	httpRequests *prometheus.CounterVec
	httpDuration *prometheus.HistogramVec

	orders         *prometheus.CounterVec
	orderDuration  *prometheus.HistogramVec
	batchOrders    prometheus.Observer
	commitDuration prometheus.Observer
	waiting        prometheus.Gauge
	waitingLimit   prometheus.Gauge
	expired        prometheus.Counter

	locks         *prometheus.CounterVec
	lockDuration  *prometheus.HistogramVec
	breakerOpen   *prometheus.GaugeVec
	breakerOpened *prometheus.CounterVec

	idEvents     *prometheus.CounterVec
	idsClockStep prometheus.Gauge
	idsStoreAway prometheus.Gauge

	outboxHanded    *prometheus.CounterVec
	outboxBatch     prometheus.Observer
	publishDuration prometheus.Observer
	outboxAge       prometheus.Observer
	outboxFailures  prometheus.Counter
	outboxEvents    *prometheus.GaugeVec
	outboxOldest    prometheus.Gauge

	consumed        *prometheus.CounterVec
	consumeDuration *prometheus.HistogramVec

	units         *prometheus.GaugeVec
	oversold      prometheus.Gauge
	unaccounted   prometheus.Gauge
	checkedAt     prometheus.Gauge
	checkFailures prometheus.Counter
}

func newMetrics() *metrics {
	r := prometheus.NewRegistry()
	d := definer{promauto.With(r)}
	m := &metrics{
		registry: r,

		httpRequests: d.counters("seckill_http_requests_total", "Answered HTTP requests.", "method", "route", "status"),
		httpDuration: d.durations("seckill_http_request_duration_seconds", "Time to answer an HTTP request.", "method", "route"),

		orders:         d.counters("seckill_orders_total", "Requests to place an order, by outcome.", "outcome"),
		orderDuration:  d.fineDurations("seckill_order_duration_seconds", "Time to answer a request to place an order.", 1.1, "outcome"),
		batchOrders:    d.sizes("seckill_commit_batch_orders", "Orders in one batch."),
		commitDuration: d.durations("seckill_commit_duration_seconds", "Time that the database took for one batch.").WithLabelValues(),
		waiting:        d.gauge("seckill_commit_waiting_orders", "Orders that wait for a batch."),
		waitingLimit:   d.gauge("seckill_commit_waiting_orders_limit", "Maximum number of orders that may wait; more are refused."),
		expired:        d.counter("seckill_orders_expired_total", "Unpaid orders that were closed."),

		locks:         d.counters("seckill_locks_total", "Locks asked for, by outcome, and those that were lost.", "outcome"),
		lockDuration:  d.durations("seckill_lock_duration_seconds", "Time to acquire a lock; for outcome lost, the time it was held.", "outcome"),
		breakerOpen:   d.gauges("seckill_breaker_open", "1 while a breaker keeps calls from its servers.", "breaker"),
		breakerOpened: d.counters("seckill_breaker_opened_total", "Times that a breaker found its servers unavailable.", "breaker"),

		idEvents:     d.counters("seckill_ids_events_total", "Events of the id generator.", "event"),
		idsClockStep: d.gauge("seckill_ids_clock_step_seconds", "How far the clock went back the last time."),
		idsStoreAway: d.gauge("seckill_ids_store_away", "1 while the store of ids or worker leases does not answer."),

		outboxHanded:    d.counters("seckill_outbox_events_total", "Events handed to the broker, by outcome: sent, refused (given up: refused for good, or out of attempts), unknown (tried again), away (the broker is unavailable).", "outcome"),
		outboxBatch:     d.sizes("seckill_outbox_batch_events", "Events that were claimed together."),
		publishDuration: d.durations("seckill_outbox_publish_duration_seconds", "Time until the broker confirmed a batch of events, or failed.").WithLabelValues(),
		outboxAge:       d.durations("seckill_outbox_age_seconds", "Time from the commit of an event until it was marked as sent.").WithLabelValues(),
		outboxFailures:  d.counter("seckill_outbox_store_failures_total", "Failures of the relay to reach the database."),
		outboxEvents:    d.gauges("seckill_outbox_events", "Unsent events of the whole shop: pending, stale (pending for over ten minutes; 0 unless this process runs the job monitor) and failed.", "state"),
		outboxOldest:    d.gauge("seckill_outbox_oldest_seconds", "Age of the oldest pending event of the whole shop."),

		consumed:        d.counters("seckill_consumed_total", "Deliveries to consumers, by result.", "consumer", "result"),
		consumeDuration: d.durations("seckill_consume_duration_seconds", "Time to handle a delivery.", "consumer"),

		units:         d.gauges("seckill_units", "Units of the vouchers on sale, or until recently, of the whole shop: total, stock (left) and live (held by orders).", "state"),
		oversold:      d.gauge("seckill_oversold_units", "Orders beyond the units of their voucher; anything but 0 is a defect."),
		unaccounted:   d.gauge("seckill_unaccounted_units", "Difference between total and stock + live; anything but 0 is a defect."),
		checkedAt:     d.gauge("seckill_books_read_timestamp_seconds", "When units and outbox were read last; 0: not yet."),
		checkFailures: d.counter("seckill_books_failures_total", "Times that units and outbox could not be read."),
	}
	d.buildInfo()
	m.createSeries()
	return m
}

// orderOutcomes are the values of the label outcome of orders; "internal" stands for any other code.
var orderOutcomes = []service.Code{
	service.CodePlaced, service.CodeReplayed, service.CodeInvalid, service.CodeNotFound, service.CodeNotStarted, service.CodeEnded,
	service.CodeSoldOut, service.CodeAlreadyOrdered, service.CodeInProgress, service.CodeKeyReused, service.CodeBusy,
	service.CodeUnavailable, service.CodeUnknown, service.CodeInternal,
}

// createSeries creates the series that can be known, at 0.
func (m *metrics) createSeries() {
	for _, status := range []int{200, 201, 400, 401, 409, 422, 429} {
		m.requests(http.MethodPost, "/api/v1/orders", strconv.Itoa(status))
	}
	m.httpDuration.WithLabelValues(http.MethodPost, "/api/v1/orders")
	for _, outcome := range orderOutcomes {
		m.orders.WithLabelValues(string(outcome))
		m.orderDuration.WithLabelValues(string(outcome))
	}
	for outcome := lock.Granted; outcome <= lock.Lost; outcome++ {
		m.locks.WithLabelValues(outcome.String())
		m.lockDuration.WithLabelValues(outcome.String())
	}
	for _, breaker := range []string{"lock", "broker"} {
		m.breakerOpen.WithLabelValues(breaker)
		m.breakerOpened.WithLabelValues(breaker)
	}
	for kind := idgen.ClockWait; kind <= idgen.SegmentFailed; kind++ {
		m.idEvents.WithLabelValues(kind.String())
	}
	for _, outcome := range []string{"sent", "refused", "unknown", "away"} {
		m.outboxHanded.WithLabelValues(outcome)
	}
	for _, state := range []string{"pending", "stale", "failed"} {
		m.outboxEvents.WithLabelValues(state)
	}
	for _, state := range []string{"total", "stock", "live"} {
		m.units.WithLabelValues(state)
	}
	for _, group := range []string{service.PointsConsumer, service.NotificationConsumer} {
		m.consumeDuration.WithLabelValues(group)
		for _, result := range []consumer.Result{consumer.Took, consumer.Duplicate, consumer.Ignored, consumer.Failed, consumer.Poison} {
			m.consumed.WithLabelValues(group, string(result))
		}
	}
}

// requests returns the counter of a kind of answer. The server errors of its route come with it, before the first.
func (m *metrics) requests(method, route, status string) prometheus.Counter {
	m.httpRequests.WithLabelValues(method, route, "500")
	m.httpRequests.WithLabelValues(method, route, "503")
	return m.httpRequests.WithLabelValues(method, route, status)
}

// handler serves all metrics.
func (m *metrics) handler() http.Handler {
	process := prometheus.NewRegistry()
	process.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return promhttp.HandlerFor(prometheus.Gatherers{m.registry, process}, promhttp.HandlerOpts{})
}

// addSnowflake adds the metrics of a generator of snowflakes.
func (m *metrics) addSnowflake(s *idgen.Snowflake) {
	m.gaugeFunc("seckill_ids_worker", "Worker id in use.", func() float64 { return float64(s.Stats().Worker) })
	// A lease is of the workers 2p and 2p+1, of which the second takes over from the first; see idgen.LeaseStore.
	m.gaugeFunc("seckill_ids_second_worker", "1 while the second worker id of the leased pair is in use.", func() float64 { return float64(s.Stats().Worker % 2) })
	m.gaugeFunc("seckill_ids_ahead_seconds", "How far ids are ahead of the clock.", func() float64 { return s.Stats().Ahead.Seconds() })
	m.gaugeFunc("seckill_ids_lease_left_seconds", "Time for which ids can be issued without a renewal.", func() float64 { return s.Stats().LeaseLeft.Seconds() })
	m.counterFunc("seckill_ids_clock_rollbacks_total", "Times that the clock was seen to go back.", func() float64 { return float64(s.Stats().Rollbacks) })
	m.gaugeFunc("seckill_ids_waiting_calls", "Calls that wait for ids.", func() float64 { return float64(s.Stats().Waiting) })
}

// addSegment adds the metrics of a generator of segments.
func (m *metrics) addSegment(s *idgen.Segment) {
	m.gaugeFunc("seckill_ids_segment_remaining", "Loaded ids that are not used yet.", func() float64 { return float64(s.Stats().Remaining) })
	m.gaugeFunc("seckill_ids_segment_step", "Ids that the next load asks for.", func() float64 { return float64(s.Stats().Step) })
	m.gaugeFunc("seckill_ids_segment_load_seconds", "Time that the last load took.", func() float64 { return s.Stats().LastLoad.Seconds() })
	m.counterFunc("seckill_ids_segment_waits_total", "Times that a call had to wait for a load.", func() float64 { return float64(s.Stats().Waited) })
	m.gaugeFunc("seckill_ids_waiting_calls", "Calls that wait for ids.", func() float64 { return float64(s.Stats().Waiting) })
}

// addDatabase adds the metrics of the database's connection pool.
func (m *metrics) addDatabase(db *repository.DB) {
	m.gaugeFunc("seckill_db_connections_max", "Maximum number of connections to the database.", func() float64 { return float64(db.Stats().MaxOpenConnections) })
	m.stateFunc("seckill_db_connections", "Connections to the database, by whether they are in use.", "in_use", func() float64 { return float64(db.Stats().InUse) })
	m.stateFunc("seckill_db_connections", "Connections to the database, by whether they are in use.", "idle", func() float64 { return float64(db.Stats().Idle) })
	m.counterFunc("seckill_db_connection_waits_total", "Times that a connection to the database had to be waited for.", func() float64 { return float64(db.Stats().WaitCount) })
	m.counterFunc("seckill_db_connection_wait_seconds_total", "Time spent waiting for a connection to the database.", func() float64 { return db.Stats().WaitDuration.Seconds() })
}

// addRedis adds the metrics of Redis's connection pool. A cluster's client has one pool per server and none of its own, so
// it has no such metrics.
func (m *metrics) addRedis(client redis.UniversalClient) {
	single, ok := client.(*redis.Client)
	if !ok {
		return
	}
	m.gaugeFunc("seckill_redis_connections_max", "Maximum number of connections to Redis.", func() float64 { return float64(single.Options().PoolSize) })
	m.stateFunc("seckill_redis_connections", "Connections to Redis, by whether they are in use.", "in_use", func() float64 { s := single.PoolStats(); return float64(s.TotalConns) - float64(s.IdleConns) })
	m.stateFunc("seckill_redis_connections", "Connections to Redis, by whether they are in use.", "idle", func() float64 { return float64(single.PoolStats().IdleConns) })
	m.counterFunc("seckill_redis_connection_waits_total", "Times that a connection to Redis had to be waited for.", func() float64 { return float64(single.PoolStats().WaitCount) })
	m.counterFunc("seckill_redis_connection_wait_seconds_total", "Time spent waiting for a connection to Redis.", func() float64 { return time.Duration(single.PoolStats().WaitDurationNs).Seconds() })
}

func (m *metrics) gaugeFunc(name, help string, value func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, value))
}

func (m *metrics) stateFunc(name, help, state string, value func() float64) {
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: prometheus.Labels{"state": state}}, value))
}

func (m *metrics) counterFunc(name, help string, value func() float64) {
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help}, value))
}

// definer defines metrics in a registry: counter and gauge one series, the others one for each combination of labels.
type definer struct{ promauto.Factory }

func (d definer) counter(name, help string) prometheus.Counter {
	return d.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func (d definer) gauge(name, help string) prometheus.Gauge {
	return d.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
}

func (d definer) counters(name, help string, labels ...string) *prometheus.CounterVec {
	return d.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
}

func (d definer) gauges(name, help string, labels ...string) *prometheus.GaugeVec {
	return d.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
}

// durations defines histograms with buckets from 0.1 ms to 10 s.
func (d definer) durations(name, help string, labels ...string) *prometheus.HistogramVec {
	return d.fineDurations(name, help, 0, labels...)
}

// fineDurations adds native buckets, each wider than the one before by a factor, for exact percentiles on the live board.
func (d definer) fineDurations(name, help string, factor float64, labels ...string) *prometheus.HistogramVec {
	return d.NewHistogramVec(prometheus.HistogramOpts{
		Name: name, Help: help, Buckets: prometheus.ExponentialBucketsRange(0.0001, 10, 16), NativeHistogramBucketFactor: factor,
	}, labels)
}

// sizes defines a histogram of numbers of things.
func (d definer) sizes(name, help string) prometheus.Histogram {
	return d.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(1, 2, 12)})
}

// buildInfo says which build this is.
func (d definer) buildInfo() {
	version, revision := "unknown", "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = info.Main.Version
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	d.gauges("seckill_build_info", "Which build this is; always 1.", "version", "revision", "goversion").
		WithLabelValues(version, revision, runtime.Version()).Set(1)
}
