package app

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"seckill/handler/token"
	"seckill/repository/repotest/brokerserver"
	"seckill/repository/repotest/dbtest"
	"seckill/repository/repotest/redistest"
	"seckill/repository/repotest/wait"
)

// journey is the way of an order that was placed and paid: each span, and the one that it is part of.
var journey = map[string]map[string]string{
	"place": {
		"POST /api/v1/orders": "the client's", "lock acquire": "POST /api/v1/orders", "lock release": "POST /api/v1/orders",
		"commit order": "POST /api/v1/orders", "commit batch": "commit order",
		"publish ORDER_CREATED": "commit order", "process ORDER_CREATED": "publish ORDER_CREATED",
	},
	"pay": {
		"POST /api/v1/orders/:id/pay": "the client's", "pay order": "POST /api/v1/orders/:id/pay",
		"publish ORDER_PAID": "pay order", "process ORDER_PAID": "publish ORDER_PAID",
	},
}

// One order is one connected trace, from the client's own span to the consumer's, also where that is another process.
func TestTraces_OneOrder(t *testing.T) {
	check := func(t *testing.T, opts Options) {
		traces := newCollector(t)
		opts.Trace.Endpoint = traces.URL
		shop := open(t, opts)
		running := []*App{shop}
		if !opts.Events.Consume {
			running = append(running, consume(t, opts))
		}
		voucher := newBuyer(t, checked(t), shop.URL(), 1, token.Admin).createVoucher(sale(10, 1, time.Hour))
		user := newBuyer(t, checked(t), shop.URL(), 2, token.User)
		const placing, paying = "0af7651916cd43dd8448eb211c80319c", "1af7651916cd43dd8448eb211c80319c"
		order := user.do(http.MethodPost, "/api/v1/orders", map[string]string{"voucher_id": voucher},
			"traceparent", "00-"+placing+"-b7ad6b7169203331-01").mustBe(t, "201")
		if got := order.header.Get("Trace-Id"); got != placing {
			t.Errorf("the answer's trace is %q, the request's %q", got, placing)
		}
		user.do(http.MethodPost, "/api/v1/orders/"+order.text("id")+"/pay", nil,
			"traceparent", "00-"+paying+"-b7ad6b7169203331-01").mustBe(t, "200")
		wait.Within(t, 20*time.Second, "the effect of every event", func() bool {
			audit, err := shop.DB.Audit(t.Context(), everything)
			return err == nil && audit.OK
		})
		mustAudit(t, shop.DB)
		for _, app := range running {
			closeApp(t, app) // which sends what is left
		}
		checkTrace(t, traces.of(t, placing), journey["place"])
		checkTrace(t, traces.of(t, paying), journey["pay"])
	}
	t.Run("embedded", func(t *testing.T) { check(t, defaults(t)) })
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		opts := optionsFor(t, target, redistest.Start(t).Addr)
		opts.Events.Broker, opts.Events.Consume = "rabbitmq", false
		opts.Events.AMQPURL = brokerserver.RabbitMQ(t).URL()
		check(t, opts)
	})
}

// checkTrace compares the spans of a trace, and what each is part of, with what they should be.
func checkTrace(t *testing.T, spans map[string]*tracepb.Span, want map[string]string) {
	t.Helper()
	for name, parent := range want {
		span := spans[name]
		if span == nil {
			t.Errorf("the trace has no span %s", name)
			continue
		}
		id := "\xb7\xad\x6b\x71\x69\x20\x33\x31" // the client's
		if spans[parent] != nil {
			id = string(spans[parent].SpanId)
		}
		if string(span.ParentSpanId) != id {
			t.Errorf("%s is not part of %s", name, parent)
		}
	}
	for name := range spans {
		if _, known := want[name]; !known {
			t.Errorf("the trace has a span %s as well", name)
		}
	}
}

// Orders of one batch have traces of their own, which name the one batch.
func TestTraces_Batch(t *testing.T) {
	traces := newCollector(t)
	opts := defaults(t)
	opts.Trace.Endpoint = traces.URL
	shop := open(t, opts)
	voucher := newBuyer(t, checked(t), shop.URL(), 1, token.Admin).createVoucher(sale(200, 1, time.Hour))
	counts := runBuyers(200, 50, func(i int) []answer {
		return []answer{newBuyer(t, fast, shop.URL(), int64(10+i), token.User).place(voucher)}
	})
	if counts["201"] != 200 {
		t.Fatalf("got %v", counts)
	}
	mustAudit(t, shop.DB)
	closeApp(t, shop)
	batches, commits := map[string]bool{}, 0
	for _, span := range traces.all() {
		if span.Name == "commit batch" {
			batches[string(span.SpanId)] = true
		}
	}
	for _, span := range traces.all() {
		if span.Name != "commit order" {
			continue
		}
		commits++
		if len(span.Links) != 1 || !batches[string(span.Links[0].SpanId)] {
			t.Errorf("an order has %d links, want one to its batch", len(span.Links))
		}
	}
	if commits != 200 || len(batches) == 0 || len(batches) == commits {
		t.Errorf("%d orders in %d batches", commits, len(batches))
	}
}

// --trace-ratio=0 starts no traces, but continues those of callers.
func TestTraces_Ratio(t *testing.T) {
	traces := newCollector(t)
	opts := defaults(t)
	opts.Trace.Endpoint, opts.Trace.Ratio = traces.URL, new(float64)
	shop := open(t, opts)
	voucher := newBuyer(t, checked(t), shop.URL(), 1, token.Admin).createVoucher(sale(10, 1, time.Hour))
	user := newBuyer(t, checked(t), shop.URL(), 2, token.User)
	placed := user.place(voucher).mustBe(t, "201")
	if got := placed.header.Get("Trace-Id"); got != "" {
		t.Errorf("an answer without a trace names %q", got)
	}
	looked := user.do(http.MethodGet, "/api/v1/orders", nil, "traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	if looked.mustBe(t, "200").header.Get("Trace-Id") == "" {
		t.Error("a request that was traced so far is traced no longer")
	}
	mustAudit(t, shop.DB)
	closeApp(t, shop)
	if spans := traces.all(); len(spans) != 1 || spans[0].Name != "GET /api/v1/orders" {
		t.Errorf("%d spans: %v", len(spans), spans)
	}
}

// A collector that is away, or takes connections and never answers, costs orders nothing, and the end three seconds.
func TestTraces_CollectorUnavailable(t *testing.T) {
	hung, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts, nobody reads
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hung.Close() }()
	for name, addr := range map[string]string{"gone": freeAddr(t), "hung": hung.Addr().String()} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10")
			t.Setenv("OTEL_BSP_MAX_QUEUE_SIZE", "50") // full at once
			t.Setenv("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "10")
			opts := defaults(t)
			opts.Trace.Endpoint = "http://" + addr
			var lines lineBuffer
			shop, err := Start(t.Context(), opts, slog.New(slog.NewJSONHandler(&lines, &slog.HandlerOptions{Level: slog.LevelWarn})))
			if err != nil {
				t.Fatal(err)
			}
			voucher := newBuyer(t, checked(t), shop.URL(), 1, token.Admin).createVoucher(sale(100, 1, time.Hour))
			counts := runBuyers(100, 20, func(i int) []answer {
				return []answer{newBuyer(t, fast, shop.URL(), int64(10+i), token.User).place(voucher)}
			})
			if counts["201"] != 100 {
				t.Errorf("got %v", counts)
			}
			mustAudit(t, shop.DB)
			ctx, cancel := context.WithTimeout(context.Background(), opts.Shutdown.ShutdownTimeout)
			defer cancel()
			if err := shop.Close(ctx); err != nil || ctx.Err() != nil {
				t.Errorf("closing: %v, %v", err, ctx.Err())
			}
			if told := lines.count("collector of traces is away") + lines.count("traces could not be sent"); told == 0 || told > 2 {
				t.Errorf("the log tells of it %d times, want once, and once at the end:\n%s", told, lines.String())
			}
		})
	}
}

// Lines of the log that belong to a request name its trace.
func TestTraces_InLog(t *testing.T) {
	traces := newCollector(t)
	opts := defaults(t)
	opts.Trace.Endpoint, opts.Log.AccessLog = traces.URL, -1
	var lines lineBuffer
	shop, err := Start(t.Context(), opts, slog.New(slog.NewJSONHandler(&lines, nil)))
	if err != nil {
		t.Fatal(err)
	}
	answer := newBuyer(t, checked(t), shop.URL(), 1, token.User).do(http.MethodGet, "/api/v1/vouchers", nil)
	closeApp(t, shop)
	for line := range strings.Lines(lines.String()) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatal(err)
		}
		if fields["path"] != "/api/v1/vouchers" {
			continue
		}
		if span, _ := fields["span_id"].(string); fields["trace_id"] != answer.header.Get("Trace-Id") || len(span) != 16 {
			t.Errorf("the line is of trace %v, span %v; the answer says %q", fields["trace_id"], fields["span_id"], answer.header.Get("Trace-Id"))
		}
		return
	}
	t.Errorf("no line about the request:\n%s", lines.String())
}

func TestTraces_Options(t *testing.T) {
	for _, endpoint := range []string{"127.0.0.1:4318", "grpc://127.0.0.1:4317", "http://", "http://%"} {
		opts := defaults(t)
		opts.Trace.Endpoint = endpoint
		if err := opts.Validate(); err == nil || !strings.Contains(err.Error(), "--traces") {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
	for _, ratio := range []float64{-0.1, 1.1} {
		opts := defaults(t)
		opts.Trace.Ratio = &ratio
		if err := opts.Validate(); err == nil || !strings.Contains(err.Error(), "--trace-ratio") {
			t.Errorf("%g: %v", ratio, err)
		}
	}
}

// lineBuffer is a log that may be read while it is written.
type lineBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lineBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lineBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (b *lineBuffer) count(what string) int { return strings.Count(b.String(), what) }
