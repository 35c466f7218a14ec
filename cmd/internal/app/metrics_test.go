package app

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"seckill/handler/token"
	"seckill/repository/repotest/dbtest"
	"seckill/service"
	"seckill/service/lock"
)

// scrape reads what a shop tells Prometheus.
func scrape(t testing.TB, url string) string {
	t.Helper()
	response, err := http.Get(url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%d %v", response.StatusCode, err)
	}
	return string(text)
}

// metric returns the value of a series, "" if there is none.
func metric(text, series string) string {
	match := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(series) + ` (\S+)$`).FindStringSubmatch(text)
	if match == nil {
		return ""
	}
	return match[1]
}

// waitMetric waits until a series has a value.
func waitMetric(t testing.TB, url, series, want string) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	got := ""
	for time.Now().Before(deadline) {
		if got = metric(scrape(t, url), series); got == want {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("%s is %q, want %s", series, got, want)
}

// Names, units and help are as Prometheus's own linter wants them, for each kind of shop.
func TestMetrics_Conventions(t *testing.T) {
	for _, ids := range []string{"snowflake", "leaf"} {
		opts := defaults(t)
		opts.IDs.IDs = ids
		shop := open(t, opts)
		problems, err := promlint.New(strings.NewReader(scrape(t, shop.URL()))).Lint()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	planted := promlintOf(t, `# HELP seckill_wait_ms Waiting.
# TYPE seckill_wait_ms counter
seckill_wait_ms 1
`)
	if len(planted) == 0 {
		t.Error("the linter finds nothing wrong with a counter in milliseconds")
	}
}

func promlintOf(t *testing.T, text string) []promlint.Problem {
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	return problems
}

// Whatever happens, the number of series stays: no label takes what a client chooses. And what can happen is there before
// it does.
func TestMetrics_SeriesAreBounded(t *testing.T) {
	shop := open(t, defaults(t))
	admin, user := newBuyer(t, fast, shop.URL(), 1, token.Admin), newBuyer(t, fast, shop.URL(), 2, token.User)
	before := series(scrape(t, shop.URL()))
	voucher := admin.createVoucher(sale(1, 1, time.Hour))
	user.place(voucher).mustBe(t, "201")
	user.place(voucher).mustBe(t, "already-ordered")
	admin.place(voucher).mustBe(t, "sold-out")
	for name := range series(scrape(t, shop.URL())) {
		if !before[name] && !strings.Contains(name, "/api/v1/admin/vouchers") && !strings.Contains(name, `"/metrics"`) {
			t.Errorf("%s came only with the first event", name)
		}
	}
	strange := []string{"/nowhere/", "/api/v1/vouchers/1", "/api/v1/orders/"}
	for _, path := range strange {
		user.do(http.MethodGet, path+"0", nil)
		user.do("ODD", path+"0", nil)
	}
	known := len(series(scrape(t, shop.URL())))
	for i := range 50 {
		user.do("ODD"+strings.Repeat("X", i), strange[i%len(strange)]+strings.Repeat("1", 1+i%18), nil)
		user.do(http.MethodGet, strange[i%len(strange)]+strings.Repeat("1", 1+i%18), nil)
	}
	if now := len(series(scrape(t, shop.URL()))); now != known {
		t.Errorf("%d series have become %d", known, now)
	}
}

// series are the names and labels of everything, without values.
func series(text string) map[string]bool {
	found := map[string]bool{}
	for line := range strings.Lines(text) {
		if name := line[:max(0, strings.LastIndex(line, " "))]; name != "" && strings.HasPrefix(name, "seckill_") {
			found[name] = true
		}
	}
	return found
}

// What the shop does is what the metrics show.
func TestMetrics_Count(t *testing.T) {
	shop := open(t, defaults(t))
	admin := newBuyer(t, fast, shop.URL(), 1, token.Admin)
	voucher := admin.createVoucher(sale(3, 1, time.Hour))
	for i := range int64(5) {
		newBuyer(t, fast, shop.URL(), 10+i, token.User).place(voucher)
	}
	newBuyer(t, fast, shop.URL(), 10, token.User).place(voucher).mustBe(t, "already-ordered")
	text := scrape(t, shop.URL())
	for series, want := range map[string]string{
		`seckill_orders_total{outcome="placed"}`:                                            "3",
		`seckill_orders_total{outcome="sold-out"}`:                                          "2",
		`seckill_orders_total{outcome="already-ordered"}`:                                   "1",
		`seckill_order_duration_seconds_count{outcome="placed"}`:                            "3",
		`seckill_http_requests_total{method="POST",route="/api/v1/orders",status="201"}`:    "3",
		`seckill_http_requests_total{method="POST",route="/api/v1/orders",status="409"}`:    "3",
		`seckill_http_request_duration_seconds_count{method="POST",route="/api/v1/orders"}`: "6",
		`seckill_locks_total{outcome="held"}`:                                               "0",
		`seckill_commit_waiting_orders`:                                                     "0",
		`seckill_commit_waiting_orders_limit`:                                               "20000",
		`seckill_ids_second_worker`:                                                         "0",
		`seckill_db_connections_max`:                                                        "1",
	} {
		if got := metric(text, series); got != want {
			t.Errorf("%s is %q, want %s", series, got, want)
		}
	}
	waitMetric(t, shop.URL(), `seckill_outbox_events_total{outcome="sent"}`, "3")
	if metric(text, `seckill_breaker_open{breaker="lock"}`) == "" || metric(text, `seckill_breaker_open{breaker="broker"}`) == "" {
		t.Error("the breakers do not show")
	}
	if metric(text, `seckill_locks_total{outcome="granted"}`) == "0" || !strings.Contains(text, `seckill_build_info{goversion="go`) {
		t.Error("no lock was granted, or it is not known which build this is")
	}
}

// Metrics of the stock check show what the database holds.
func TestStockCheck(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		shop := open(t, optionsFor(t, target, ""))
		admin := newBuyer(t, fast, shop.URL(), 1, token.Admin)
		voucher := admin.createVoucher(sale(3, 1, time.Hour))
		user := newBuyer(t, fast, shop.URL(), 2, token.User)
		user.place(voucher).mustBe(t, "201")
		m := newMetrics()
		check := stockCheck{db: shop.DB, observer: &observer{metrics: m, log: shop.log}}
		if err := errors.Join(check.readOutbox(t.Context()), check.readUnits(t.Context())); err != nil {
			t.Fatal(err)
		}
		text := written(t, m)
		for series, want := range map[string]string{
			`seckill_units{state="total"}`: "3", `seckill_units{state="stock"}`: "2", `seckill_units{state="live"}`: "1",
			`seckill_oversold_units`: "0", `seckill_unaccounted_units`: "0", `seckill_books_failures_total`: "0",
		} {
			if got := metric(text, series); got != want {
				t.Errorf("%s is %q, want %s", series, got, want)
			}
		}
	})
}

// written is what the metrics come to, as a scrape would have it.
func written(t *testing.T, m *metrics) string {
	t.Helper()
	recorder := httptest.NewRecorder()
	m.handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return recorder.Body.String()
}

// Many report at once while somebody reads.
func TestMetrics_Parallel(t *testing.T) {
	m := &observer{metrics: newMetrics(), log: slog.New(slog.DiscardHandler)}
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 200 {
				m.Request(http.MethodGet, "/r"+strings.Repeat("x", n%5), 200+i, time.Millisecond)
				m.Answered(service.CodeSoldOut, time.Millisecond)
				m.Answered("unheard of", time.Millisecond)
				m.Locked(lock.Granted, time.Millisecond)
			}
		})
	}
	wg.Go(func() { _, _ = m.registry.Gather() })
	wg.Wait()
	text, requests := written(t, m.metrics), 0
	for name := range series(text) {
		if strings.HasPrefix(name, "seckill_http_requests_total{") {
			n, err := strconv.Atoi(metric(text, name))
			if err != nil {
				t.Fatal(err)
			}
			requests += n
		}
	}
	if requests != 8*200 {
		t.Errorf("%v requests are counted", requests)
	}
	if got := metric(text, `seckill_orders_total{outcome="internal"}`); got != strconv.Itoa(8*200) {
		t.Errorf("%s outcomes were unheard of", got)
	}
}

func BenchmarkMetricsOfAnOrder(b *testing.B) {
	m := &observer{metrics: newMetrics(), log: slog.New(slog.DiscardHandler)}
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			m.Locked(lock.Granted, time.Millisecond)
			m.Waiting(1)
			m.Answered("", time.Millisecond)
			m.Request(http.MethodPost, "/api/v1/orders", 201, time.Millisecond)
		}
	})
}
