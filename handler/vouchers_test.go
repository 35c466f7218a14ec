package handler_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"seckill/handler/token"
	"seckill/service"
	"seckill/service/idgen"
)

const voucherDocument = `{"id":"7","title":"Dinner <for> 二","price_cents":4900,"pay_seconds":60,"user_limit":1,"total":100,"stock":3,"starts_at":"2026-11-10T23:00:00.0421Z","ends_at":"2026-11-11T01:00:00.0421Z","server_time":"2026-11-11T00:00:00.0421Z"}`

func TestVouchers_Get(t *testing.T) {
	shop := newFakeShop()
	a := serve(t, shop, nil)
	if got := a.send("GET", "/api/v1/vouchers/7", ""); got.status != 200 || got.body != voucherDocument || !reflect.DeepEqual(shop.called(), []any{"voucher", idgen.ID(7)}) {
		t.Errorf("%d %s, called %v", got.status, got.body, shop.called())
	}
	shop.err = service.ErrNotFound
	for _, id := range []string{"8", "x", "0"} {
		if got := a.send("GET", "/api/v1/vouchers/"+id, ""); got.status != 404 || !strings.Contains(got.body, `"code":"not-found"`) {
			t.Errorf("voucher %s: %d %s", id, got.status, got.body)
		}
	}
}

func TestVouchers_Admin(t *testing.T) {
	shop := newFakeShop()
	a := serve(t, shop, nil)
	start, end := instant.Truncate(time.Second), instant.Truncate(time.Second).Add(time.Hour)
	title, limit, cents := "New", 2, int64(0)
	for _, c := range []struct {
		method, path, body string
		status             int
		call               []any
	}{
		{"POST", "/api/v1/admin/vouchers", `{"title":"T","price_cents":1,"stock":2,"starts_at":"2026-11-11T00:00:00Z","ends_at":"2026-11-11T02:00:00+01:00"}`, 201,
			[]any{"create", service.NewVoucher{Title: "T", PriceCents: 1, Stock: 2, UserLimit: 1, PayWithin: 15 * time.Minute, StartsAt: start, EndsAt: end}}},
		{"POST", "/api/v1/admin/vouchers", `{"title":"T","price_cents":1,"stock":2,"user_limit":3,"pay_seconds":5,"starts_at":"2026-11-11T00:00:00Z","ends_at":"2026-11-11T01:00:00Z"}`, 201,
			[]any{"create", service.NewVoucher{Title: "T", PriceCents: 1, Stock: 2, UserLimit: 3, PayWithin: 5 * time.Second, StartsAt: start, EndsAt: end}}},
		{"PATCH", "/api/v1/admin/vouchers/7", `{"title":"New","user_limit":2}`, 200,
			[]any{"change", idgen.ID(7), service.VoucherChange{Title: &title, UserLimit: &limit}}},
		{"PATCH", "/api/v1/admin/vouchers/7", `{"price_cents":0,"starts_at":"2026-11-11T00:00:00Z","ends_at":"2026-11-11T01:00:00Z"}`, 200,
			[]any{"change", idgen.ID(7), service.VoucherChange{PriceCents: &cents, StartsAt: &start, EndsAt: &end}}},
		{"POST", "/api/v1/admin/vouchers/7/end", "", 200, []any{"end", idgen.ID(7)}},
	} {
		got := a.send(c.method, c.path, c.body, as(t, 1, token.Admin)...)
		if got.status != c.status || got.body != voucherDocument || !reflect.DeepEqual(shop.called(), c.call) {
			t.Errorf("%s %s: %d %s, called %+v", c.method, c.path, got.status, got.body, shop.called())
		}
		if location := got.header.Get("Location"); c.status == 201 && location != "/api/v1/vouchers/7" {
			t.Errorf("Location %q", location)
		}
	}
}

// A time to pay that does not fit in a duration must not overflow to a valid one.
func TestVouchers_PaySecondsOverflow(t *testing.T) {
	shop := newFakeShop()
	a := serve(t, shop, nil)
	for _, n := range []string{"36028797018963973" /* wraps round to 5 s */, "18446744075" /* to 1.3 s */, "9223372036854775807", "-9223372036854775808", "-1", "604801"} {
		body := `{"title":"T","price_cents":1,"stock":2,"pay_seconds":` + n + `,"starts_at":"2026-11-11T00:00:00Z","ends_at":"2026-11-11T01:00:00Z"}`
		shop.err = errDefect // it stands for the refusal of the service, so that the description is not offended
		a.send("POST", "/api/v1/admin/vouchers", body, as(t, 1, token.Admin)...)
		created, ok := shop.called()[1].(service.NewVoucher)
		if !ok || created.PayWithin >= time.Second && created.PayWithin <= service.MaxPayWithin {
			t.Errorf("%s seconds became %v", n, created.PayWithin)
		}
	}
}

// Without a key of the client, an unknown outcome names the generated one.
func TestAddStock_RequestID(t *testing.T) {
	shop := newFakeShop()
	a := serve(t, shop, nil)
	const path = "/api/v1/admin/vouchers/7/stock"
	got := a.send("POST", path, `{"units":5}`, append(as(t, 1, token.Admin), "Idempotency-Key", "k1")...)
	if got.status != 200 || got.body != voucherDocument || !reflect.DeepEqual(shop.called(), []any{"stock", idgen.ID(7), int64(5), "k1"}) {
		t.Errorf("%d %s, called %v", got.status, got.body, shop.called())
	}
	seen := map[any]bool{}
	for range 2 {
		shop.err = service.Unknown(errDefect)
		got = a.send("POST", path, `{"units":5}`, as(t, 1, token.Admin)...)
		id, _ := shop.called()[3].(string)
		if service.ValidRequestID(id) != nil || seen[id] {
			t.Errorf("request id %q", id)
		}
		seen[id] = true
		if got.status != 503 || !strings.Contains(got.body, fmt.Sprintf(`"request_id":%q`, id)) {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
}

// The refusal of a reused key names the value that differs.
func TestAddStock_ReusedKey(t *testing.T) {
	shop := newFakeShop()
	a := serve(t, shop, nil)
	for field, want := range map[string]string{"units": `"field":"units"`, "": `"field":"Idempotency-Key"`} {
		shop.err = &service.Error{Code: service.CodeKeyReused, Field: field, Message: "used before"}
		got := a.send("POST", "/api/v1/admin/vouchers/7/stock", `{"units": 5}`, append(as(t, 1, token.Admin), "Idempotency-Key", "k")...)
		if got.status != 422 || !strings.Contains(got.body, want) || !strings.Contains(got.body, `"code":"idempotency-key-reuse"`) {
			t.Errorf("%d %s, want %s", got.status, got.body, want)
		}
	}
}
