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

func TestAccessLog_SamplesAllButErrors(t *testing.T) {
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
	if len(lines) < 3 || len(lines) > 3*(touched+1) {
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
	if touched := seconds(func() { lines = send(service.ErrBusy) }); len(lines) > 3*(touched+1) {
		t.Errorf("a full queue was logged %d times in %d s", len(lines), touched)
	}
}

// The lines and the numbers of omitted lines add up to the requests.
func TestAccessLog_CountsOmittedLines(t *testing.T) {
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

func TestAccessLog_Unlimited(t *testing.T) {
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

func TestAccessLog_ClientGoneIsNoError(t *testing.T) {
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

func TestRecover_Panic(t *testing.T) {
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

// The client must see that an answer is incomplete after a panic.
func TestRecover_PanicAfterHeader(t *testing.T) {
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

// http.ErrAbortHandler closes a connection and is not an error.
func TestRecover_ErrAbortHandler(t *testing.T) {
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

func TestObserve_Requests(t *testing.T) {
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
