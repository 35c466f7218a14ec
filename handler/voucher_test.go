package handler_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"seckill/handler"
	"seckill/handler/token"
	"seckill/service"
	"seckill/service/idgen"
)

const voucherJSON = `{"id":"7","title":"Dinner \u003cfor\u003e 二","price_cents":4900,"pay_seconds":60,"user_limit":1,"total":100,"stock":3,"starts_at":"2026-11-10T23:00:00.0421Z","ends_at":"2026-11-11T01:00:00.0421Z","server_time":"2026-11-11T00:00:00.0421Z"}`

func TestGetVoucher(t *testing.T) {
	shop := newFakeShop()
	a := serve(t, shop, nil)
	if got := a.send("GET", "/api/v1/vouchers/7", ""); got.status != 200 || got.body != voucherJSON || !reflect.DeepEqual(shop.called(), []any{"voucher", idgen.ID(7)}) {
		t.Errorf("%d %s, called %v", got.status, got.body, shop.called())
	}
	shop.err = service.ErrNotFound
	for _, id := range []string{"8", "x", "0"} {
		if got := a.send("GET", "/api/v1/vouchers/"+id, ""); got.status != 404 || !strings.Contains(got.body, `"code":"not-found"`) {
			t.Errorf("voucher %s: %d %s", id, got.status, got.body)
		}
	}
}

func TestVoucherAdmin(t *testing.T) {
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
		if got.status != c.status || got.body != voucherJSON || !reflect.DeepEqual(shop.called(), c.call) {
			t.Errorf("%s %s: %d %s, called %+v", c.method, c.path, got.status, got.body, shop.called())
		}
		if location := got.header.Get("Location"); c.status == 201 && location != "/api/v1/vouchers/7" {
			t.Errorf("Location %q", location)
		}
	}
}

// A time to pay that does not fit in a duration must not come round as one that does.
func TestSecondsDoNotWrapRound(t *testing.T) {
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

// Who adds stock can settle an unknown outcome also without a key of their own.
func TestAddStockHasAlwaysARequestID(t *testing.T) {
	shop := newFakeShop()
	a := serve(t, shop, nil)
	const path = "/api/v1/admin/vouchers/7/stock"
	got := a.send("POST", path, `{"units":5}`, append(as(t, 1, token.Admin), "Idempotency-Key", "k1")...)
	if got.status != 200 || got.body != voucherJSON || !reflect.DeepEqual(shop.called(), []any{"stock", idgen.ID(7), int64(5), "k1"}) {
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

func TestAudit(t *testing.T) {
	verdict := error(nil)
	a := serve(t, newFakeShop(), func(c *handler.Config) {
		c.Audit = func(ctx context.Context) (service.Audit, error) {
			if _, bounded := ctx.Deadline(); !bounded {
				t.Error("an audit without end")
			}
			return service.Audit{
				At: time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC), Totals: service.AuditTotals{Orders: 7},
				Findings: []service.Finding{{ID: "stock-negative", Invariant: 1, Check: "c", Broken: 1, Rows: []map[string]string{{"stock": "-1"}}}},
			}, verdict
		}
	})
	if got := a.send("GET", "/api/v1/admin/audit", "", as(t, 1, token.Admin)...); got.status != 200 ||
		!strings.HasPrefix(got.body, `{"ok":false,"at":"2026-11-11T00:00:00Z","totals":{"vouchers":0,"total":0,"stock":0,"orders":7,`) ||
		!strings.HasSuffix(got.body, `"findings":[{"id":"stock-negative","invariant":1,"check":"c","ok":false,"broken":1,"rows":[{"stock":"-1"}]}]}`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	verdict = errors.New("database away")
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

// A key that was used for other units is refused by the name of what differs, not of the key.
func TestReusedKeyNamesWhatDiffers(t *testing.T) {
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
