package handler_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"seckill/handler"
	"seckill/handler/apitest"
	"seckill/handler/token"
	"seckill/service"
	"seckill/service/idgen"
	"seckill/service/outbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	key     = []byte("0123456789abcdef0123456789abcdef")
	instant = time.Date(2026, 11, 11, 0, 0, 0, 42_100_000, time.UTC)
)

// fakeShop gives the same answer to every call and records the last one.
type fakeShop struct {
	order    service.Order
	voucher  service.Voucher
	rows     int // in lists
	replayed bool
	err      error
	block    chan struct{} // if set, PlaceOrder waits for it or for its context

	mu   sync.Mutex
	last []any
}

func newFakeShop() *fakeShop {
	return &fakeShop{
		order: service.Order{
			ID: 77, VoucherID: 7, UserID: 42, RequestID: "77", Status: service.Pending, Version: 1,
			PriceCents: 4900, CreatedAt: instant, PayBy: instant.Add(time.Minute),
		},
		voucher: service.Voucher{
			ID: 7, Title: "Dinner <for> 二", PriceCents: 4900, PayWithin: time.Minute,
			Terms: service.Terms{
				Total: 100, Stock: 3, Placed: 98, UserLimit: 1,
				StartsAt: instant.Add(-time.Hour), EndsAt: instant.Add(time.Hour),
			},
			ServerTime: instant.In(time.FixedZone("elsewhere", 3600)),
		},
	}
}

func (f *fakeShop) note(call ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.last = call
}

func (f *fakeShop) called() []any {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

func (f *fakeShop) PlaceOrder(ctx context.Context, req service.PlaceRequest) (service.Order, bool, error) {
	f.note("place", req)
	if f.block != nil {
		select {
		case <-f.block:
		case <-ctx.Done():
			return service.Order{}, false, service.Unavailable(context.Cause(ctx))
		}
	}
	return f.order, f.replayed, f.err
}

func (f *fakeShop) PayOrder(_ context.Context, user service.UserID, id idgen.ID, payment string) (service.Order, error) {
	f.note("pay", user, id, payment)
	return f.order, f.err
}

func (f *fakeShop) CancelOrder(_ context.Context, user service.UserID, id idgen.ID) (service.Order, error) {
	f.note("cancel", user, id)
	return f.order, f.err
}

func (f *fakeShop) Order(_ context.Context, user service.UserID, id idgen.ID) (service.Order, error) {
	f.note("order", user, id)
	return f.order, f.err
}

func (f *fakeShop) Orders(_ context.Context, user service.UserID, before idgen.ID, limit int) ([]service.Order, error) {
	f.note("orders", user, before, limit)
	orders := make([]service.Order, min(f.rows, limit))
	for i := range orders {
		orders[i] = f.order
		orders[i].ID = idgen.ID(1000 - i)
	}
	return orders, f.err
}

func (f *fakeShop) Voucher(_ context.Context, id idgen.ID) (service.Voucher, error) {
	f.note("voucher", id)
	return f.voucher, f.err
}

func (f *fakeShop) Vouchers(_ context.Context, before idgen.ID, limit int) ([]service.Voucher, error) {
	f.note("vouchers", before, limit)
	vouchers := make([]service.Voucher, min(f.rows, limit))
	for i := range vouchers {
		vouchers[i] = f.voucher
		vouchers[i].ID = idgen.ID(1000 - i)
	}
	return vouchers, f.err
}

func (f *fakeShop) CreateVoucher(_ context.Context, v service.NewVoucher) (service.Voucher, error) {
	f.note("create", v)
	return f.voucher, f.err
}

func (f *fakeShop) ChangeVoucher(_ context.Context, id idgen.ID, c service.VoucherChange) (service.Voucher, error) {
	f.note("change", id, c)
	return f.voucher, f.err
}

func (f *fakeShop) AddStock(_ context.Context, id idgen.ID, units int64, requestID string) (service.Voucher, error) {
	f.note("stock", id, units, requestID)
	return f.voucher, f.err
}

func (f *fakeShop) EndSale(_ context.Context, id idgen.ID) (service.Voucher, error) {
	f.note("end", id)
	return f.voucher, f.err
}

// fakeIDs counts from 1 in each call.
type fakeIDs struct{ err error }

func (f fakeIDs) Next(context.Context) (idgen.ID, error) { return 1, f.err }
func (f fakeIDs) NextN(_ context.Context, dst []idgen.ID) error {
	for i := range dst {
		dst[i] = idgen.ID(i + 1)
	}
	return f.err
}
func (fakeIDs) Close(context.Context) error { return nil }

// fakeOutbox has one event, 7, which was given up.
type fakeOutbox struct{ err error }

var givenUp = outbox.Entry{
	Event: outbox.Event{ID: 7, Type: "ORDER_PAID", Key: 5, Version: 2, Payload: []byte(`{"a":1}`), CreatedAt: time.Unix(0, 0)},
	State: outbox.Failed, Attempts: 8, Due: time.Unix(60, 0),
}

func (f fakeOutbox) List(_ context.Context, state outbox.State, _ int64, limit int) ([]outbox.Entry, error) {
	if state != givenUp.State {
		return nil, f.err
	}
	return slices.Repeat([]outbox.Entry{givenUp}, min(limit, 3)), f.err
}
func (f fakeOutbox) Show(_ context.Context, id int64) (outbox.Entry, bool, error) {
	return givenUp, id == givenUp.ID, f.err
}
func (f fakeOutbox) Retry(_ context.Context, ids []int64) (int, error) {
	if ids[0] == givenUp.ID {
		return 1, f.err
	}
	return 0, f.err
}
func (fakeOutbox) RetryFailed(context.Context) (int, error) { panic("not by HTTP") }

// api is a handler behind a real server. Its answers are checked against openapi.yaml.
type api struct {
	t       *testing.T
	url     string
	client  *http.Client
	handler *handler.Handler
}

// newHandler returns a handler with all routes.
func newHandler(t testing.TB, shop handler.Shop, change func(*handler.Config)) *handler.Handler {
	t.Helper()
	layout := idgen.DefaultLayout()
	cfg := handler.Config{
		IDs: fakeIDs{}, IDLayout: &layout, Outbox: fakeOutbox{}, Board: newBoard(0),
		Shop: shop, Keys: [][]byte{key}, Guests: true,
		Ready:   func(context.Context) error { return nil },
		Log:     slog.New(slog.DiscardHandler),
		Audit:   func(context.Context) (service.Audit, error) { return service.Audit{OK: true}, nil },
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "up 1\n") }),
	}
	if change != nil {
		change(&cfg)
	}
	h, err := handler.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func serve(t *testing.T, shop handler.Shop, change func(*handler.Config)) *api {
	t.Helper()
	h := newHandler(t, shop, change)
	server := httptest.NewUnstartedServer(nil)
	server.Config = handler.NewServer(h, slog.New(slog.DiscardHandler))
	server.Start()
	t.Cleanup(server.Close)
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	client := &http.Client{
		Transport:     apitest.Transport(t, base),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return &api{t, server.URL, client, h}
}

// answer is the answer to a request.
type answer struct {
	status int
	header http.Header
	body   string
}

// send sends a request; headers are pairs of name and value. A body has the type JSON unless headers say otherwise.
func (a *api) send(method, path, body string, headers ...string) answer {
	a.t.Helper()
	req, err := http.NewRequest(method, a.url+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Del(headers[i])
		if headers[i+1] != "" {
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	resp, err := a.client.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer resp.Body.Close()
	document, err := io.ReadAll(resp.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(document)}
}

// as returns the headers of a user's or admin's request.
func as(t testing.TB, user service.UserID, role token.Role) []string {
	t.Helper()
	return []string{"Authorization", "Bearer " + sign(t, token.Claims{User: user, Role: role})}
}

func sign(t testing.TB, c token.Claims) string {
	t.Helper()
	if c.Expires.IsZero() {
		c.Expires = time.Now().Add(time.Hour)
	}
	signed, err := token.Sign(key, c)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

var errDefect = errors.New("dial tcp 10.0.0.3: a secret of the machine room")
