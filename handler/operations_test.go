package handler_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"seckill/handler"
	"seckill/handler/token"
	"seckill/service"
)

func ready(context.Context) error { return nil }

func noLog() *slog.Logger { return slog.New(slog.DiscardHandler) }

func TestProbes_States(t *testing.T) {
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
	expect("/readyz", 503, `"detail":"a server that the shop needs is not available","retry_after":1}`)
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

func TestNewProbes_Routes(t *testing.T) {
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

func TestAudit_Answers(t *testing.T) {
	failure := error(nil)
	a := serve(t, newFakeShop(), func(c *handler.Config) {
		c.Audit = func(ctx context.Context) (service.Audit, error) {
			if _, bounded := ctx.Deadline(); !bounded {
				t.Error("an audit without a deadline")
			}
			return service.Audit{
				At: time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC), Totals: service.AuditTotals{Orders: 7},
				Findings: []service.Finding{{ID: "stock-negative", Invariant: 1, Check: "c", Broken: 1, Rows: []map[string]string{{"stock": "-1"}}}},
			}, failure
		}
	})
	if got := a.send("GET", "/api/v1/admin/audit", "", as(t, 1, token.Admin)...); got.status != 200 ||
		!strings.HasPrefix(got.body, `{"ok":false,"at":"2026-11-11T00:00:00Z","totals":{"vouchers":0,"total":0,"stock":0,"orders":7,`) ||
		!strings.HasSuffix(got.body, `"findings":[{"id":"stock-negative","invariant":1,"check":"c","ok":false,"broken":1,"rows":[{"stock":"-1"}]}]}`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	failure = errors.New("database away")
	if got := a.send("GET", "/api/v1/admin/audit", "", as(t, 1, token.Admin)...); got.status != 500 {
		t.Errorf("%d %s", got.status, got.body)
	}
	without := serve(t, newFakeShop(), func(c *handler.Config) { c.Audit, c.Guests = nil, false })
	if got := without.send("GET", "/api/v1/admin/audit", "", as(t, 1, token.Admin)...); got.status != 404 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := without.send("POST", "/api/v1/session/guest", ""); got.status != 404 {
		t.Errorf("a guest where there are none: %d %s", got.status, got.body)
	}
}
