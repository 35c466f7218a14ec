package handler_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"seckill/handler"
	"seckill/handler/token"
	"seckill/service"
)

type traceKey struct{}

// Config.Trace sees every request below /api/ and its result, including panics. Its context reaches the log.
func TestTrace_Requests(t *testing.T) {
	shop := newFakeShop()
	var lines logBuffer
	var seen []string
	look := func(c *handler.Config) {
		c.Log = slog.New(contextLog{slog.NewJSONHandler(&lines, nil)})
		c.Trace = func(w http.ResponseWriter, r *http.Request, route string) (*http.Request, func(int, error)) {
			w.Header().Set("Trace-Id", "4711")
			traced := r.WithContext(context.WithValue(r.Context(), traceKey{}, "4711"))
			return traced, func(status int, err error) {
				seen = append(seen, fmt.Sprint(r.Method, " ", route, " ", status, " ", service.CodeOf(err)))
			}
		}
	}
	a := serve(t, shop, look)
	send := func(method, path, body string, want int, traced bool) {
		t.Helper()
		got := a.send(method, path, body, as(t, 42, token.User)...)
		if got.status != want || traced != (got.header.Get("Trace-Id") == "4711") {
			t.Errorf("%s %s: %d, trace %q", method, path, got.status, got.header.Get("Trace-Id"))
		}
	}
	send("POST", place, goodBody, 201, true)
	send("GET", "/api/v1/orders/77", "", 200, true)
	shop.err = service.ErrSoldOut
	send("POST", place, goodBody, 409, true)
	shop.err = errors.New("a defect")
	send("POST", place, goodBody, 500, true)
	a = serve(t, panicking{shop}, look)
	send("POST", place, goodBody, 500, true)
	send("GET", "/healthz", "", 200, false)
	send("GET", "/api/v1/nothing", "", 404, false)
	want := []string{
		"POST /api/v1/orders 201 ", "GET /api/v1/orders/:id 200 ", "POST /api/v1/orders 409 ", "POST /api/v1/orders 500 internal",
		"POST /api/v1/orders 500 internal",
	}
	if strings.Join(seen, "\n") != strings.Join(want, "\n") {
		t.Errorf("saw\n%s\nwant\n%s", strings.Join(seen, "\n"), strings.Join(want, "\n"))
	}
	traced := 0
	for _, line := range lines.lines(t) {
		if line["trace"] == "4711" {
			traced++
		}
	}
	if traced != len(want)+1 { // one more for the panic's stack
		t.Errorf("%d lines of the log have a trace, want %d", traced, len(want)+1)
	}
}

// contextLog writes down what the context of a line says.
type contextLog struct{ slog.Handler }

func (h contextLog) Handle(ctx context.Context, r slog.Record) error {
	if id, ok := ctx.Value(traceKey{}).(string); ok {
		r.AddAttrs(slog.String("trace", id))
	}
	return h.Handler.Handle(ctx, r)
}
