package handler_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"seckill/handler"
	"seckill/handler/token"
	"seckill/service"
)

func TestRoutes_Unknown(t *testing.T) {
	a := serve(t, newFakeShop(), nil)
	for _, c := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"GET", "/api/v1/order", 404, ""},
		{"GET", "/api/v1/vouchers/", 404, ""},
		{"GET", "/api/v2/orders", 404, ""},
		{"POST", "/", 404, ""},
		{"GET", "/api/v1//orders", 404, ""},
		{"PUT", "/api/v1/orders", 405, "GET, POST"},
		{"DELETE", "/api/v1/vouchers/7", 405, "GET"},
		{"POST", "/healthz", 405, "GET, HEAD"},
		{"OPTIONS", "/api/v1/orders/7/pay", 405, "POST"},
		{"BREW", "/api/v1/admin/vouchers/7", 405, "PATCH"},
	} {
		got := a.send(c.method, c.path, "")
		if got.status != c.status || got.header.Get("Content-Type") != "application/problem+json" || !sameSet(got.header.Get("Allow"), c.allow) {
			t.Errorf("%s %s: %d allow %q %s", c.method, c.path, got.status, got.header.Get("Allow"), got.body)
		}
	}
}

func sameSet(got, want string) bool {
	g, w := strings.Split(got, ", "), strings.Split(want, ", ")
	if len(g) != len(w) {
		return false
	}
	for _, s := range w {
		if !strings.Contains(", "+got+", ", ", "+s+", ") {
			return false
		}
	}
	return true
}

func TestWeb_GetsUnknownPaths(t *testing.T) {
	a := serve(t, newFakeShop(), func(c *handler.Config) {
		c.Web = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "page of "+r.URL.Path) })
	})
	plain := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} // the page is not described
	resp, err := plain.Get(a.url + "/shop/board")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); resp.StatusCode != 200 || string(body) != "page of /shop/board" || err != nil {
		t.Errorf("%d %s %v", resp.StatusCode, body, err)
	}
	if got := a.send("GET", "/api/board", ""); got.status != 404 || got.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestPlaceOrder_Timeout(t *testing.T) {
	shop := newFakeShop()
	shop.block = make(chan struct{})
	a := serve(t, shop, func(c *handler.Config) { c.PlaceTimeout = time.Millisecond })
	if got := a.send("POST", place, goodBody, as(t, 42, token.User)...); got.status != 503 || got.header.Get("Retry-After") != "1" {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestLimiter_Routes(t *testing.T) {
	shop := newFakeShop()
	a := serve(t, shop, func(c *handler.Config) {
		c.UserLimit = handler.Rate{PerSecond: 0.01, Burst: 2}
		c.AddressLimit = handler.Rate{PerSecond: 0.001, Burst: 5}
	})
	send := func(user service.UserID, headers ...string) int {
		got := a.send("POST", place, goodBody, append(as(t, user, token.User), headers...)...)
		wait := got.header.Get("Retry-After")
		if got.status == 429 && (wait == "" || wait == "0" || !strings.Contains(got.body, `"retry_after":`+wait)) {
			t.Errorf("Retry-After %q, %s", wait, got.body)
		}
		return got.status
	}
	got := []int{send(1), send(1), send(1), send(2), send(2), send(3, "X-Forwarded-For", "203.0.113.9")}
	if want := []int{201, 201, 429, 201, 201, 429}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("answers %v, want %v", got, want)
	}
	if got := a.send("GET", "/healthz", ""); got.status != 200 {
		t.Errorf("a probe was limited: %d", got.status)
	}
}

// Only a trusted proxy may name the client's address.
func TestLimiter_TrustedProxy(t *testing.T) {
	a := serve(t, newFakeShop(), func(c *handler.Config) {
		c.AddressLimit = handler.Rate{PerSecond: 0.001, Burst: 1}
		c.TrustedProxies = []string{"127.0.0.0/8"}
	})
	for _, c := range []struct {
		client string
		status int
	}{
		{"203.0.113.9", 200}, {"203.0.113.9", 429}, {"203.0.113.10", 200},
		{"2001:db8:1:2::1", 200}, {"2001:db8:1:2:ffff::2", 429}, {"2001:db8:1:3::1", 200},
	} {
		if got := a.send("GET", "/api/v1/vouchers", "", "X-Forwarded-For", c.client); got.status != c.status {
			t.Errorf("%s: %d, want %d", c.client, got.status, c.status)
		}
	}
	if _, err := handler.New(handler.Config{
		Shop: newFakeShop(), Keys: [][]byte{key}, Ready: ready, Log: noLog(), TrustedProxies: []string{"nonsense"},
	}); err == nil {
		t.Error("nonsense is trusted")
	}
}
