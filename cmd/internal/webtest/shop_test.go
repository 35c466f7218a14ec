package webtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"seckill/cmd/internal/app"
	"seckill/handler/token"
	"seckill/repository"
	"seckill/service"
	"seckill/service/outbox"
)

// shop is a real one, embedded, behind a front that browsers speak to and that can break what passes. When the test is
// over, the audit speaks.
type shop struct {
	t     testing.TB
	url   string // the front's
	app   *app.App
	admin *user

	mu    sync.Mutex
	fault func(r *http.Request) fault
	keys  []string // Idempotency-Key of every order that was sent, in order
}

// fault is what becomes of a request: passed on unless it says otherwise.
type fault struct {
	answer func(w http.ResponseWriter) // instead of the shop's
	lose   bool                        // the shop does it, and its answer is lost
	hold   <-chan struct{}             // it is passed on when this is closed
}

// openShop starts a shop.
func openShop(t testing.TB) *shop {
	t.Helper()
	var opts app.Options
	parser, err := kong.New(&opts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(nil); err != nil {
		t.Fatal(err)
	}
	opts.API.Listen, opts.Servers.Data, opts.Log.AccessLog = "127.0.0.1:0", t.TempDir(), 1
	opts.Commit.ExpireEvery = 50 * time.Millisecond
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	running, err := app.Start(t.Context(), opts, log)
	if err != nil {
		t.Fatal(err)
	}
	s := &shop{t: t, app: running}
	t.Cleanup(s.close)
	s.url = s.front()
	s.admin = s.user(1, token.Admin)
	return s
}

// close audits and closes.
func (s *shop) close() {
	ctx, cancel := context.WithTimeout(context.Background(), pageTimeout)
	defer cancel()
	if _, err := outbox.WaitEmpty(ctx, repository.NewOutbox(s.app.DB)); err != nil {
		s.t.Errorf("the outbox is not empty: %v", err)
	}
	audit, err := s.app.DB.Audit(ctx, repository.AuditOptions{Settled: true})
	if err := errors.Join(err, audit.Err(), s.app.Close(ctx)); err != nil {
		s.t.Error(err)
	}
}

// front passes requests on to the shop, unless there is a fault for them.
func (s *shop) front() string {
	target, err := url.Parse(s.app.URL())
	if err != nil {
		s.t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1,
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f := s.see(r)
		if f.hold != nil {
			select {
			case <-f.hold:
			case <-r.Context().Done():
				return
			}
		}
		switch {
		case f.answer != nil:
			f.answer(w)
		case f.lose:
			proxy.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		default:
			proxy.ServeHTTP(w, r)
		}
	}))
	s.t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	return front.URL
}

// see notes a request and finds its fault.
func (s *shop) see(r *http.Request) (f fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if isOrder(r) {
		s.keys = append(s.keys, r.Header.Get("Idempotency-Key"))
	}
	if s.fault != nil {
		f = s.fault(r)
	}
	return f
}

func isOrder(r *http.Request) bool {
	return r.Method == http.MethodPost && r.URL.Path == "/api/v1/orders"
}

// breaks sets what goes wrong from now on, or nothing. It is called for one request after the other.
func (s *shop) breaks(fault func(r *http.Request) fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = fault
}

// sent returns the keys of the orders that were sent.
func (s *shop) sent() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.keys...)
}

// refusal is an answer of the shop that is made here, with more members if need be. Busy shops want to be asked again
// after two seconds.
func refusal(status int, code string, more ...map[string]any) func(http.ResponseWriter) {
	problem := map[string]any{"title": http.StatusText(status), "status": status, "code": code, "detail": "as the test wants it"}
	for _, members := range more {
		maps.Copy(problem, members)
	}
	return func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "application/problem+json")
		if status == http.StatusServiceUnavailable {
			w.Header().Set("Retry-After", "2")
		}
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(problem)
	}
}

// user is somebody who comes without a browser.
type user struct {
	s     *shop
	token string
}

func (s *shop) user(id int64, role token.Role) *user {
	s.t.Helper()
	signed, err := token.Sign(s.app.JWTKey, token.Claims{User: service.UserID(id), Role: role, Expires: time.Now().Add(time.Hour)})
	if err != nil {
		s.t.Fatal(err)
	}
	return &user{s, signed}
}

// do sends a request straight to the shop and wants it to be done.
func (u *user) do(method, path string, body any) map[string]any {
	u.s.t.Helper()
	payload := []byte("{}")
	if body != nil {
		var err error
		if payload, err = json.Marshal(body); err != nil {
			u.s.t.Fatal(err)
		}
	}
	request, err := http.NewRequestWithContext(u.s.t.Context(), method, u.s.app.URL()+path, bytes.NewReader(payload))
	if err != nil {
		u.s.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+u.token)
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		u.s.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	var answer map[string]any
	if err := errors.Join(err, json.Unmarshal(text, &answer)); err != nil || response.StatusCode/100 != 2 {
		u.s.t.Fatalf("%s %s: %s %s %v", method, path, response.Status, text, err)
	}
	return answer
}

// offer is a voucher to be put on sale: one of 5 units, a quarter of an hour to pay, open for an hour, unless it says
// otherwise.
type offer struct {
	title      string
	units      int
	paySeconds int
	opensIn    time.Duration
}

// sell puts a voucher on sale and returns the selector of its ticket.
func (s *shop) sell(o offer) (ticket, id string) {
	s.t.Helper()
	if o.title == "" {
		o.title = "Dinner for two"
	}
	if o.units == 0 {
		o.units = 5
	}
	if o.paySeconds == 0 {
		o.paySeconds = 900
	}
	if o.opensIn == 0 {
		o.opensIn = -time.Minute
	}
	v := s.admin.do(http.MethodPost, "/api/v1/admin/vouchers", map[string]any{
		"title": o.title, "price_cents": 4900, "stock": o.units, "pay_seconds": o.paySeconds,
		"starts_at": time.Now().Add(o.opensIn).UTC(), "ends_at": time.Now().Add(time.Hour).UTC(),
	})
	id = v["id"].(string)
	return `[data-voucher="` + id + `"]`, id
}

// order places one as somebody without a browser, and returns its path.
func (u *user) order(voucher string) string {
	u.s.t.Helper()
	placed := u.do(http.MethodPost, "/api/v1/orders", map[string]string{"voucher_id": voucher})
	return "/api/v1/orders/" + placed["id"].(string)
}

// totals is what the database holds.
func (s *shop) totals() service.AuditTotals {
	s.t.Helper()
	audit, err := s.app.DB.Audit(s.t.Context(), repository.AuditOptions{})
	if err := errors.Join(err, audit.Err()); err != nil {
		s.t.Fatal(err)
	}
	return audit.Totals
}
