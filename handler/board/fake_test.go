package board

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/service"
	"seckill/service/idgen"
)

// fakeShop is the database of a test.
type fakeShop struct {
	mu       sync.Mutex
	vouchers map[idgen.ID]service.Voucher
	others   []service.Instance
	left     []string
	broken   error
	hangs    bool
	reads    int
}

func (s *fakeShop) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *fakeShop) put(v service.Voucher) {
	s.change(func() {
		if s.vouchers == nil {
			s.vouchers = map[idgen.ID]service.Voucher{}
		}
		s.vouchers[v.ID] = v
	})
}

func (s *fakeShop) enter(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if s.hangs {
		s.mu.Unlock()
		<-ctx.Done()
		s.mu.Lock()
		return ctx.Err()
	}
	return s.broken
}

func (s *fakeShop) Vouchers(ctx context.Context, _ idgen.ID, limit int) (found []service.Voucher, err error) {
	err = s.enter(ctx)
	s.change(func() {
		for _, v := range s.vouchers {
			v.ServerTime = time.Now()
			found = append(found, v)
		}
	})
	slices.SortFunc(found, func(a, b service.Voucher) int { return int(b.ID - a.ID) })
	return found[:min(len(found), limit)], err
}

func (s *fakeShop) Report(ctx context.Context, name string, report []byte) ([]service.Instance, error) {
	err := s.enter(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]service.Instance{{Name: name, Report: report}}, s.others...), err
}

func (s *fakeShop) Leave(_ context.Context, name string) error {
	s.change(func() { s.left = append(s.left, name) })
	return nil
}

// voucher is on sale from begin on.
func voucher(id idgen.ID, stock, total int64, begin time.Time) service.Voucher {
	return service.Voucher{ID: id, Title: "voucher " + id.String(), Terms: service.Terms{
		Total: total, Stock: stock, Placed: total - stock, StartsAt: begin, EndsAt: begin.Add(time.Hour),
	}}
}

// fakeMetrics are the metrics of a test: by the names that figures.go knows them by.
type fakeMetrics struct {
	*prometheus.Registry
	orders *prometheus.HistogramVec
	totals map[string]*prometheus.CounterVec
	gauges map[string]*prometheus.GaugeVec
}

func newMetrics() *fakeMetrics {
	m := &fakeMetrics{
		Registry: prometheus.NewRegistry(), totals: map[string]*prometheus.CounterVec{}, gauges: map[string]*prometheus.GaugeVec{},
		orders: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "seckill_order_duration_seconds", Buckets: []float64{1}, NativeHistogramBucketFactor: 1.1,
		}, []string{"outcome"}),
	}
	m.MustRegister(m.orders)
	for name, label := range map[string]string{"seckill_orders_total": "outcome", "seckill_locks_total": "outcome", "seckill_outbox_events_total": "outcome", "seckill_ids_events_total": "event"} {
		m.totals[name] = prometheus.NewCounterVec(prometheus.CounterOpts{Name: name}, []string{label})
		m.MustRegister(m.totals[name])
	}
	for name, labels := range map[string][]string{"seckill_breaker_open": {"breaker"}, "seckill_ids_store_away": nil, "seckill_ids_worker": nil, "seckill_ids_clock_step_seconds": nil, "seckill_commit_waiting_orders": nil} {
		m.gauges[name] = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name}, labels)
		m.MustRegister(m.gauges[name])
	}
	return m
}

// answered counts an answer to a request to place an order.
func (m *fakeMetrics) answered(outcome string, took time.Duration) {
	m.count("seckill_orders_total", outcome, 1)
	m.orders.WithLabelValues(outcome).Observe(took.Seconds())
}

func (m *fakeMetrics) count(name, label string, n float64) {
	m.totals[name].WithLabelValues(label).Add(n)
}

func (m *fakeMetrics) set(name string, value float64, labels ...string) {
	m.gauges[name].WithLabelValues(labels...).Set(value)
}

// metricsOf are the metrics of a test's board.
func metricsOf(b *Board) *fakeMetrics { return b.cfg.Metrics.(*fakeMetrics) }

// newBoard is a board over a fake shop, which is not run yet.
func newBoard(shop *fakeShop, change func(*Config)) *Board {
	cfg := Config{Metrics: newMetrics(), Instance: "me:1", Vouchers: shop, Registry: shop, Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&cfg)
	}
	return New(cfg)
}

// run runs it until the test, or the function that it returns, ends it.
func run(t *testing.T, b *Board) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.Run(ctx)
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

// screen is the connection of a viewer. Each write takes a while; one that takes longer than its deadline fails, as that
// of a socket whose other end does not read.
type screen struct {
	mu       sync.Mutex
	takes    time.Duration
	deadline time.Time
	header   http.Header
	got      bytes.Buffer
}

func (s *screen) Header() http.Header { return s.header }
func (s *screen) WriteHeader(int)     {}
func (s *screen) Flush()              {}

func (s *screen) SetReadDeadline(time.Time) error { return nil }

func (s *screen) SetWriteDeadline(at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = at
	return nil
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	takes, left := s.takes, time.Until(s.deadline)
	s.mu.Unlock()
	if takes > left {
		time.Sleep(left)
		return 0, os.ErrDeadlineExceeded
	}
	time.Sleep(takes)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got.Write(p)
}

// watcher is a viewer and what it knows.
type watcher struct {
	screen
	leave context.CancelFunc
	done  chan error
}

func watch(t *testing.T, b *Board, takes time.Duration, lastID string) *watcher {
	ctx, cancel := context.WithCancel(t.Context())
	w := &watcher{screen: screen{takes: takes, header: http.Header{}}, leave: cancel, done: make(chan error, 1)}
	r := httptest.NewRequestWithContext(ctx, "GET", "/api/v1/board/stream", nil)
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.done <- b.Stream(w, r)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return w
}

// seen is what a viewer makes of the stream.
type seen struct {
	Snapshots int
	Changes   int
	ID        string
	Figures   map[string]int64
	Vouchers  []voucherView
	Instances []map[string]any
	Events    []Event
}

func (s seen) kinds() (kinds []Kind) {
	for _, e := range s.Events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// read does what a browser does. before is what it knew from an earlier connection.
func (w *watcher) read(t *testing.T, before seen) seen {
	t.Helper()
	w.mu.Lock()
	text := w.got.String()
	w.mu.Unlock()
	state := before
	frame := func() (n int64) {
		_, _ = fmt.Sscanf(state.ID[strings.LastIndex(state.ID, "-")+1:], "%d", &n)
		return n
	}
	for _, message := range strings.Split(text, "\n\n") {
		var kind, data string
		last := frame()
		for _, line := range strings.Split(message, "\n") {
			name, value, _ := strings.Cut(line, ": ")
			switch name {
			case "event":
				kind = value
			case "data":
				data = value
			case "id":
				state.ID = value
			}
		}
		if data == "" {
			continue
		}
		if kind == "snapshot" {
			state = seen{Snapshots: state.Snapshots + 1, Changes: state.Changes, ID: state.ID}
		} else if state.Changes++; frame() != last+1 {
			t.Errorf("frame %d follows frame %d", frame(), last)
		}
		events := state.Events
		state.Events = nil
		if err := json.Unmarshal([]byte(data), &state); err != nil { // maps are merged, lists replaced
			t.Fatalf("%v: %s", err, data)
		}
		state.Events = append(events, state.Events...)
	}
	return state
}
