package handler_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"seckill/handler/token"
	"seckill/service"
	"seckill/service/idgen"
)

const (
	place         = "/api/v1/orders"
	goodBody      = `{"voucher_id":"7"}`
	orderDocument = `{"id":"77","voucher_id":"7","user_id":"42","request_id":"77","status":"pending","price_cents":4900,"created_at":"2026-11-11T00:00:00.0421Z","pay_by":"2026-11-11T00:01:00.0421Z"}`
	problemFmt    = `{"title":%q,"status":%d,"code":%q,"detail":%q%s}`
)

func TestPlaceOrder_Answers(t *testing.T) {
	shop := newFakeShop()
	a := serve(t, shop, nil)
	got := a.send("POST", place, goodBody, append(as(t, 42, token.User), "Idempotency-Key", "my-key")...)
	if got.status != 201 || got.body != orderDocument || got.header.Get("Location") != "/api/v1/orders/77" {
		t.Errorf("%d %s at %q", got.status, got.body, got.header.Get("Location"))
	}
	want := []any{"place", service.PlaceRequest{VoucherID: 7, UserID: 42, RequestID: "my-key"}}
	if !reflect.DeepEqual(shop.called(), want) {
		t.Errorf("called %v", shop.called())
	}
	if got.header.Get("Cache-Control") != "no-store" || got.header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("header %v", got.header)
	}

	shop.replayed = true
	got = a.send("POST", place, " {\n\t\"voucher_id\" : \"7\" } ", append(as(t, 42, token.Admin), "Content-Type", "application/json; charset=UTF-8")...)
	if got.status != 200 || got.body != orderDocument || got.header.Get("Location") != "/api/v1/orders/77" {
		t.Errorf("replayed: %d %s at %q", got.status, got.body, got.header.Get("Location"))
	}
	if want := []any{"place", service.PlaceRequest{VoucherID: 7, UserID: 42}}; !reflect.DeepEqual(shop.called(), want) {
		t.Errorf("called %v", shop.called())
	}
}

// Every refusal has its status, code and related members. Clients do not see the cause.
func TestPlaceOrder_Refusals(t *testing.T) {
	shop := newFakeShop()
	a := serve(t, shop, nil)
	closed := shop.order
	closed.Status, closed.CloseReason, closed.PayBy, closed.ClosedAt = service.Closed, service.Expired, closed.PaidAt, closed.PayBy
	closedJSON := strings.Replace(strings.Replace(orderDocument, `"pending"`, `"closed","close_reason":"expired"`, 1), "pay_by", "closed_at", 1)
	voucher := shop.voucher
	unknown := service.Unknown(errDefect)
	unknown.RequestID = "my-key"
	for _, c := range []struct {
		err        error
		status     int
		retryAfter string
		title      string
		code       string
		detail     string
		more       string
	}{
		{service.ErrSoldOut, 409, "", "Conflict", "sold-out", service.ErrSoldOut.Message, ""},
		{service.ErrInProgress, 409, "", "Conflict", "in-progress", service.ErrInProgress.Message, ""},
		{fmt.Errorf("wrapped: %w", service.ErrSoldOut), 409, "", "Conflict", "sold-out", service.ErrSoldOut.Message, ""},
		{&service.Error{Code: service.CodeAlreadyOrdered, Message: "m", Order: &closed}, 409, "", "Conflict", "already-ordered", "m", `,"order":` + closedJSON},
		{&service.Error{Code: service.CodeNotStarted, Message: "m", Voucher: &voucher}, 409, "", "Conflict", "sale-not-started", "m", `,"voucher":` + voucherDocument},
		{&service.Error{Code: service.CodeEnded, Message: "m", Voucher: &voucher}, 409, "", "Conflict", "sale-ended", "m", `,"voucher":` + voucherDocument},
		{service.ErrNotFound, 404, "", "Not Found", "not-found", service.ErrNotFound.Message, ""},
		{service.Invalid("price_cents", "must be %d", 3), 422, "", "Unprocessable Entity", "invalid", "price_cents must be 3", `,"field":"price_cents"`},
		{service.ErrKeyReused, 422, "", "Unprocessable Entity", "idempotency-key-reuse", service.ErrKeyReused.Message, `,"field":"Idempotency-Key"`},
		{service.ErrBusy, 503, "1", "Service Unavailable", "busy", service.ErrBusy.Message, `,"retry_after":1`},
		{service.Unavailable(errDefect), 503, "1", "Service Unavailable", "unavailable", service.ErrUnavailable.Message, `,"retry_after":1`},
		{&service.Error{Code: service.CodeUnavailable, Message: "m", RetryAfter: 2001e6}, 503, "3", "Service Unavailable", "unavailable", "m", `,"retry_after":3`},
		{&service.Error{Code: service.CodeBusy, Message: "m"}, 503, "1", "Service Unavailable", "busy", "m", `,"retry_after":1`},
		{unknown, 503, "1", "Service Unavailable", "outcome-unknown", "the outcome is not known; to resolve it, send the same request again with the header Idempotency-Key: my-key", `,"retry_after":1,"request_id":"my-key"`},
		{service.ErrUnknown, 503, "1", "Service Unavailable", "outcome-unknown", service.ErrUnknown.Message, `,"retry_after":1`},
		{&service.Error{Code: service.CodeInternal, Message: "secret"}, 500, "", "Internal Server Error", "internal", "internal error; it has been logged", ""},
		{&service.Error{Code: "never-heard-of", Message: "secret"}, 500, "", "Internal Server Error", "internal", "internal error; it has been logged", ""},
		{errDefect, 500, "", "Internal Server Error", "internal", "internal error; it has been logged", ""},
	} {
		shop.err = c.err
		got := a.send("POST", place, goodBody, as(t, 42, token.User)...)
		want := fmt.Sprintf(problemFmt, c.title, c.status, c.code, c.detail, c.more)
		if got.status != c.status || got.body != want || got.header.Get("Retry-After") != c.retryAfter {
			t.Errorf("%v:\n got %d %s retry %q\nwant %d %s retry %q", c.err, got.status, got.body, got.header.Get("Retry-After"), c.status, want, c.retryAfter)
		}
		if kind := got.header.Get("Content-Type"); kind != "application/problem+json" {
			t.Errorf("%v: type %q", c.err, kind)
		}
	}
}

func TestOrders_Refusals(t *testing.T) {
	shop := newFakeShop()
	a := serve(t, shop, nil)
	for code, path := range map[service.Code]string{
		service.CodeOrderPaid:   "/api/v1/orders/77/cancel",
		service.CodeOrderClosed: "/api/v1/orders/77/pay",
		service.CodeRefundDue:   "/api/v1/orders/77/pay",
	} {
		shop.err = &service.Error{Code: code, Message: "m", Order: &shop.order}
		got := a.send("POST", path, "", as(t, 42, token.User)...)
		if want := fmt.Sprintf(problemFmt, "Conflict", 409, code, "m", `,"order":`+orderDocument); got.status != 409 || got.body != want {
			t.Errorf("%s: %d %s", code, got.status, got.body)
		}
	}
}

func TestOrders_Calls(t *testing.T) {
	shop := newFakeShop()
	a := serve(t, shop, nil)
	user := service.UserID(42)
	for _, c := range []struct {
		method, path, body string
		call               []any
	}{
		{"GET", "/api/v1/orders/77", "", []any{"order", user, idgen.ID(77)}},
		{"POST", "/api/v1/orders/77/pay", "", []any{"pay", user, idgen.ID(77), ""}},
		{"POST", "/api/v1/orders/77/pay", `{}`, []any{"pay", user, idgen.ID(77), ""}},
		{"POST", "/api/v1/orders/77/pay", `{"payment_id":"pay_1"}`, []any{"pay", user, idgen.ID(77), "pay_1"}},
		{"POST", "/api/v1/orders/77/cancel", "", []any{"cancel", user, idgen.ID(77)}},
		{"POST", "/api/v1/orders/77/cancel", `{}`, []any{"cancel", user, idgen.ID(77)}},
	} {
		got := a.send(c.method, c.path, c.body, as(t, 42, token.User)...)
		if got.status != 200 || got.body != orderDocument || !reflect.DeepEqual(shop.called(), c.call) {
			t.Errorf("%s %s %s: %d %s, called %v", c.method, c.path, c.body, got.status, got.body, shop.called())
		}
	}
	for _, id := range []string{"0", "007", "-1", "x", "9223372036854775808", "%37%37x"} {
		if got := a.send("GET", "/api/v1/orders/"+id, "", as(t, 42, token.User)...); got.status != 404 {
			t.Errorf("order %s: %d %s", id, got.status, got.body)
		}
	}
}

func TestPage_Queries(t *testing.T) {
	shop := newFakeShop()
	a := serve(t, shop, nil)
	shop.rows = 3
	user := service.UserID(42)
	for _, c := range []struct {
		query  string
		before idgen.ID
		limit  int
		next   string
	}{
		{"", 0, 20, ""},
		{"?limit=3", 0, 3, `,"next":"998"}`},
		{"?limit=2&before=12", 12, 2, `,"next":"999"}`},
		{"?limit=100&before=9223372036854775807", 9223372036854775807, 100, ""},
	} {
		got := a.send("GET", place+c.query, "", as(t, 42, token.User)...)
		if got.status != 200 || !reflect.DeepEqual(shop.called(), []any{"orders", user, c.before, c.limit}) || !strings.HasSuffix(got.body, "}]"+c.next+"}"[min(len(c.next), 1):]) {
			t.Errorf("orders%s: %d …%.40s, called %v", c.query, got.status, got.body[max(0, len(got.body)-40):], shop.called())
		}
		got = a.send("GET", "/api/v1/vouchers"+c.query, "")
		if got.status != 200 || !reflect.DeepEqual(shop.called(), []any{"vouchers", c.before, c.limit}) || !strings.HasSuffix(got.body, "}]"+c.next+"}"[min(len(c.next), 1):]) {
			t.Errorf("vouchers%s: %d %s, called %v", c.query, got.status, got.body, shop.called())
		}
	}
	for query, field := range map[string]string{
		"?limit=0": "limit", "?limit=101": "limit", "?limit=": "limit", "?limit=x": "limit",
		"?before=0": "before", "?before=": "before", "?before=-3": "before", "?before=99999999999999999999": "before",
	} {
		got := a.send("GET", place+query, "", as(t, 42, token.User)...)
		if got.status != 422 || !strings.Contains(got.body, `"field":"`+field+`"`) {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
	if got := a.send("GET", "/api/v1/vouchers?limit=%zz", ""); got.status != 400 {
		t.Errorf("a query that is none: %d %s", got.status, got.body)
	}
	shop.rows = 0
	if got := a.send("GET", place, "", as(t, 42, token.User)...); got.body != `{"orders":[]}` {
		t.Errorf("no orders: %s", got.body)
	}
}
