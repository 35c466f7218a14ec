package app

import (
	"maps"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// httpMetrics are rate, errors and duration of each route. A metric is looked up by what a request knows, without making
// a text of its status or hashing labels: that would be most of its cost.
type httpMetrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec

	known atomic.Pointer[map[answered]timed]
	mu    sync.Mutex // whoever adds to known
}

// answered is a kind of request and its answer. Routes, methods and statuses are the shop's own, so they are few.
type answered struct {
	method, route string
	status        int
}

func newHTTPMetrics(f maker) *httpMetrics {
	h := &httpMetrics{
		requests: f.counter("http_requests_total", "Answered HTTP requests.", "method", "route", "status"),
		duration: f.histogram("http_request_duration_seconds", "Time to answer an HTTP request.", "method", "route"),
	}
	h.known.Store(&map[answered]timed{})
	for _, status := range []int{200, 201, 400, 401, 409, 422, 429} { // of the one that matters; errors come along
		h.of(answered{http.MethodPost, "/api/v1/orders", status})
	}
	return h
}

func (h *httpMetrics) of(a answered) timed {
	if t, ok := (*h.known.Load())[a]; ok {
		return t
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	known := maps.Clone(*h.known.Load())
	for _, status := range []int{http.StatusInternalServerError, http.StatusServiceUnavailable, a.status} {
		a.status = status // its errors are there before the first of them happens
		known[a] = timed{h.requests.WithLabelValues(a.method, a.route, strconv.Itoa(status)), h.duration.WithLabelValues(a.method, a.route)}
	}
	h.known.Store(&known)
	return known[a]
}

// request is told of every answered request.
func (m *metrics) request(method, route string, status int, took time.Duration) {
	if route == "" {
		route, method = "unmatched", "any"
	}
	m.http.of(answered{method, route, status}).observe(took)
}
