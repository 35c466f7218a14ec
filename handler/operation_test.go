package handler_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill/handler"
	"seckill/handler/token"
	"seckill/service"
)

func ready(context.Context) error { return nil }

func noLog() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestProbes(t *testing.T) {
	var broken error
	a := serve(t, newFakeShop(), func(c *handler.Config) {
		c.Ready = func(ctx context.Context) error {
			if deadline, ok := ctx.Deadline(); !ok || time.Until(deadline) > 2*time.Second {
				t.Error("a probe without end")
			}
			return broken
		}
	})
	expect := func(path string, status int, body string) {
		t.Helper()
		if got := a.send("GET", path, ""); got.status != status || !strings.Contains(got.body, body) {
			t.Errorf("%s: %d %s, want %d …%s…", path, got.status, got.body, status, body)
		}
		if got := a.send("HEAD", path, ""); got.status != status || got.body != "" {
			t.Errorf("HEAD %s: %d %s", path, got.status, got.body)
		}
	}
	expect("/healthz", 200, `{"status":"ok"}`)
	expect("/readyz", 200, `{"status":"ready"}`)
	broken = errDefect
	expect("/readyz", 503, `"detail":"a server that the shop needs is away or not migrated","retry_after":1}`)
	expect("/healthz", 200, `{"status":"ok"}`)
	broken = nil
	expect("/readyz", 200, `{"status":"ready"}`)
	a.handler.Drain()
	expect("/readyz", 503, `"detail":"the shop is shutting down"`)
	expect("/healthz", 200, `{"status":"ok"}`)
	if got := a.send("POST", place, goodBody, as(t, 42, token.User)...); got.status != 201 {
		t.Errorf("while draining: %d %s", got.status, got.body)
	}
	if got := a.send("GET", "/metrics", ""); got.status != 200 || got.body != "up 1\n" {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// A process that is no shop has the same probes, and nothing else.
func TestProbesAlone(t *testing.T) {
	h, err := handler.NewProbes(handler.Config{Ready: ready, Log: noLog()})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/healthz", 200}, {"HEAD", "/healthz", 200}, {"GET", "/readyz", 200}, {"POST", "/readyz", 405},
		{"GET", "/metrics", 404}, {"GET", "/docs/", 404}, {"POST", place, 404}, {"GET", "/api/v1/vouchers", 404},
	} {
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, httptest.NewRequest(want.method, want.path, nil))
		if answer.Code != want.status {
			t.Errorf("%s %s: %d %s, want %d", want.method, want.path, answer.Code, answer.Body, want.status)
		}
	}
	h.Drain()
	answer := httptest.NewRecorder()
	if h.ServeHTTP(answer, httptest.NewRequest("GET", "/readyz", nil)); answer.Code != 503 {
		t.Errorf("draining: %d", answer.Code)
	}
	if _, err := handler.NewProbes(handler.Config{Log: noLog()}); err == nil {
		t.Error("ready, whatever is not there")
	}
}

// logBuffer collects log lines as JSON.
type logBuffer struct {
	mu    sync.Mutex
	bytes bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.bytes.Write(p)
}

// lines returns what was logged since the last call.
func (b *logBuffer) lines(t *testing.T) (lines []map[string]any) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	decoder := json.NewDecoder(&b.bytes)
	for decoder.More() {
		var line map[string]any
		if err := decoder.Decode(&line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	return lines
}

// record sends a request past the network.
func record(h http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestAccessLogIsASampleButHasEveryError(t *testing.T) {
	log, shop := new(logBuffer), newFakeShop()
	h := newHandler(t, shop, func(c *handler.Config) {
		c.Log = slog.New(slog.NewJSONHandler(log, nil))
		c.AccessLog = 3
	})
	const sent = 50
	user := as(t, 42, token.User)
	send := func(err error) (lines []map[string]any) {
		shop.err = err
		for range sent {
			record(h, "POST", place, goodBody, user...)
		}
		return log.lines(t)
	}
	seconds := func(do func()) int { // how many seconds of the clock it touched
		start := time.Now().Unix()
		do()
		return int(time.Now().Unix()-start) + 1
	}
	var lines []map[string]any
	touched := seconds(func() { lines = send(service.ErrSoldOut) })
	if len(lines) < 3 || len(lines) > 3*touched {
		t.Errorf("%d requests in %d s were logged %d times", sent, touched, len(lines))
	}
	if first := lines[0]; first["status"] != 409.0 || first["method"] != "POST" || first["path"] != place || first["level"] != "INFO" || first["client"] != "192.0.2.1" {
		t.Errorf("%v", first)
	}
	lines = send(service.Unavailable(errDefect))
	if len(lines) != sent {
		t.Errorf("%d errors were logged %d times", sent, len(lines))
	}
	if first := lines[0]; first["level"] != "ERROR" || !strings.Contains(first["error"].(string), "machine room") {
		t.Errorf("%v", first)
	}
	if touched := seconds(func() { lines = send(service.ErrBusy) }); len(lines) > 3*touched {
		t.Errorf("a full queue was logged %d times in %d s", len(lines), touched)
	}
}

// Nothing is left out in silence: whenever there is a line, the lines and the numbers in them add up.
func TestAccessLogCountsWhatItLeavesOut(t *testing.T) {
	log, shop := new(logBuffer), newFakeShop()
	h := newHandler(t, shop, func(c *handler.Config) {
		c.Log = slog.New(slog.NewJSONHandler(log, nil))
		c.AccessLog = 2
	})
	sent, counted, gaps := 0, 0, 0
	for deadline := time.Now().Add(10 * time.Second); gaps < 2; {
		if time.Now().After(deadline) {
			t.Fatalf("%d sent, %d in the log, %d gaps", sent, counted, gaps)
		}
		record(h, "GET", "/healthz", "")
		sent++
		for _, line := range log.lines(t) {
			left, gap := line["not_logged_before"].(float64)
			if gap {
				gaps++
			}
			if counted += 1 + int(left); counted != sent {
				t.Fatalf("%d sent, %d in the log", sent, counted)
			}
		}
	}
}

func TestAccessLogWithoutLimit(t *testing.T) {
	log := new(logBuffer)
	h := newHandler(t, newFakeShop(), func(c *handler.Config) {
		c.Log = slog.New(slog.NewJSONHandler(log, nil))
		c.AccessLog = -1
	})
	for range 200 {
		record(h, "GET", "/healthz", "")
	}
	if n := len(log.lines(t)); n != 200 {
		t.Errorf("%d of 200", n)
	}
}

// A client that goes away is no error of the shop.
func TestClientGoneIsNoError(t *testing.T) {
	log, shop := new(logBuffer), newFakeShop()
	shop.block = make(chan struct{})
	h := newHandler(t, shop, func(c *handler.Config) { c.Log = slog.New(slog.NewJSONHandler(log, nil)) })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(ctx, "POST", place, strings.NewReader(goodBody))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", as(t, 42, token.User)[1])
	h.ServeHTTP(httptest.NewRecorder(), r)
	if lines := log.lines(t); len(lines) != 1 || lines[0]["level"] != "INFO" {
		t.Errorf("%v", lines)
	}
	shop.block, shop.err = nil, errDefect
	r.Body = io.NopCloser(strings.NewReader(goodBody))
	h.ServeHTTP(httptest.NewRecorder(), r)
	if lines := log.lines(t); len(lines) != 1 || lines[0]["level"] != "ERROR" {
		t.Errorf("a defect that nobody waited for: %v", lines)
	}
}

// panicking is a shop with a defect.
type panicking struct{ *fakeShop }

func (panicking) PlaceOrder(context.Context, service.PlaceRequest) (service.Order, bool, error) {
	panic("planted")
}

func TestPanic(t *testing.T) {
	log := new(logBuffer)
	a := serve(t, panicking{newFakeShop()}, func(c *handler.Config) { c.Log = slog.New(slog.NewJSONHandler(log, nil)) })
	got := a.send("POST", place, goodBody, as(t, 42, token.User)...)
	if got.status != 500 || strings.Contains(got.body, "planted") {
		t.Errorf("%d %s", got.status, got.body)
	}
	lines := log.lines(t)
	if len(lines) != 2 || lines[0]["cause"] != "planted" || !strings.Contains(lines[0]["stack"].(string), "placeOrder") || lines[1]["level"] != "ERROR" {
		t.Errorf("%v", lines)
	}
}

// An answer that a panic cut off must not look like a whole one.
func TestPanicInTheMiddleOfAnAnswer(t *testing.T) {
	h := newHandler(t, newFakeShop(), func(c *handler.Config) {
		c.Metrics = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("half"))
			panic("planted")
		})
	})
	server := httptest.NewServer(h)
	defer server.Close()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(server.URL + "/metrics")
	if err == nil {
		_, err = resp.Body.Read(make([]byte, 100))
		_ = resp.Body.Close()
	}
	if err == nil || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the client got a whole answer: %v", err)
	}
}

// http.ErrAbortHandler is the way to drop a connection, not a defect.
func TestAbortedAnswer(t *testing.T) {
	log := new(logBuffer)
	h := newHandler(t, newFakeShop(), func(c *handler.Config) {
		c.Log = slog.New(slog.NewJSONHandler(log, nil))
		c.Metrics = http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	})
	defer func() {
		if cause := recover(); cause != http.ErrAbortHandler {
			t.Errorf("recovered %v", cause)
		}
		if lines := log.lines(t); len(lines) != 0 {
			t.Errorf("logged %v", lines)
		}
	}()
	record(h, "GET", "/metrics", "")
}

func TestObserver(t *testing.T) {
	type seen struct {
		method, route string
		status        int
	}
	var got []seen
	h := newHandler(t, newFakeShop(), func(c *handler.Config) {
		c.Observe = func(method, route string, status int, took time.Duration) {
			if took <= 0 {
				t.Errorf("took %v", took)
			}
			got = append(got, seen{method, route, status})
		}
	})
	record(h, "GET", "/api/v1/vouchers/7", "")
	record(h, "POST", place, goodBody)
	record(h, "GET", "/nowhere", "")
	want := []seen{{"GET", "/api/v1/vouchers/:id", 200}, {"POST", place, 401}, {"GET", "", 404}}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("%v", got)
	}
}
