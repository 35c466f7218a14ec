package handler_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"seckill/handler"
	"seckill/handler/token"
	"seckill/service"
)

func TestRoutes_RequireAuthentication(t *testing.T) {
	a := serve(t, newFakeShop(), nil)
	for _, route := range a.handler.Routes() {
		path := strings.ReplaceAll(route.Path, ":id", "7")
		open := !strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, "/api/v1/vouchers") || strings.HasPrefix(path, "/api/v1/session/") ||
			strings.HasPrefix(path, "/api/v1/board") // whose tests are in screen_test.go
		if open {
			continue
		}
		got := a.send(route.Method, path, "")
		if got.status != 401 || got.header.Get("WWW-Authenticate") != `Bearer realm="seckill"` {
			t.Errorf("%s %s: %d %q", route.Method, path, got.status, got.header.Get("WWW-Authenticate"))
		}
		got = a.send(route.Method, path, "", as(t, 42, token.User)...)
		if admin := strings.HasPrefix(path, "/api/v1/admin/"); (got.status == 403) != admin || got.status == 401 {
			t.Errorf("%s %s: a user got %d", route.Method, path, got.status)
		} else if challenge := got.header.Get("WWW-Authenticate"); admin && !strings.Contains(challenge, `error="insufficient_scope"`) {
			t.Errorf("%s %s: challenge %q", route.Method, path, challenge)
		}
	}
}

func TestAuthenticate_RefusedTokens(t *testing.T) {
	shop := newFakeShop()
	a := serve(t, shop, nil)
	good := sign(t, token.Claims{User: 42, Role: token.User})
	for _, c := range []struct{ authorization, detail, challenge string }{
		{"", "send a token", ""},
		{"Basic " + good, "send a token", ""},
		{"Bearer", "send a token", ""},
		{good, "send a token", ""},
		{"Bearer ", "send a token", ""}, // the space is trimmed on its way
		{"Bearer " + good[:len(good)-1], "not valid for this shop", `error="invalid_token"`},
		{"Bearer  " + good, "not valid for this shop", `error="invalid_token"`},
		{"Bearer " + sign(t, token.Claims{User: 42, Role: token.User, Expires: time.Now().Add(-time.Minute)}), "has expired", `error_description="expired"`},
	} {
		got := a.send("POST", place, goodBody, "Authorization", c.authorization)
		if got.status != 401 || !strings.Contains(got.body, c.detail) || !strings.Contains(got.header.Get("WWW-Authenticate"), c.challenge) {
			t.Errorf("%.40q: %d %s %q", c.authorization, got.status, got.body, got.header.Get("WWW-Authenticate"))
		}
	}
	if shop.called() != nil {
		t.Errorf("called %v", shop.called())
	}
	if got := a.send("POST", place, goodBody, "Authorization", "bearer "+good); got.status != 201 {
		t.Errorf("the scheme is case-insensitive, but %d %s", got.status, got.body)
	}
}

func TestAuthenticate_RevokedToken(t *testing.T) {
	var revoked atomic.Value
	revoked.Store("")
	a := serve(t, newFakeShop(), func(c *handler.Config) {
		c.Revoked = func(claims token.Claims) bool { return claims.ID == revoked.Load() }
	})
	header := "Bearer " + sign(t, token.Claims{User: 42, Role: token.User, ID: "stolen"})
	if got := a.send("POST", place, goodBody, "Authorization", header); got.status != 201 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	revoked.Store("stolen")
	got := a.send("POST", place, goodBody, "Authorization", header)
	if got.status != 401 || !strings.Contains(got.body, "was revoked") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestGuestSession_Tokens(t *testing.T) {
	shop := newFakeShop()
	a := serve(t, shop, func(c *handler.Config) { c.GuestTTL = time.Minute })
	users := map[string]bool{}
	for range 20 {
		got := a.send("POST", "/api/v1/session/guest", "")
		var session struct {
			Token     string    `json:"token"`
			UserID    string    `json:"user_id"`
			ExpiresAt time.Time `json:"expires_at"`
		}
		if err := json.Unmarshal([]byte(got.body), &session); got.status != 201 || err != nil {
			t.Fatalf("%d %s %v", got.status, got.body, err)
		}
		user, err := strconv.ParseInt(session.UserID, 10, 64)
		if err != nil || user < 1<<62 || users[session.UserID] {
			t.Errorf("user %s %v", session.UserID, err)
		}
		users[session.UserID] = true
		if left := time.Until(session.ExpiresAt); left <= 0 || left > time.Minute {
			t.Errorf("expires in %v", left)
		}
		if got := a.send("POST", place, goodBody, "Authorization", "Bearer "+session.Token); got.status != 201 {
			t.Errorf("%d %s", got.status, got.body)
		}
		if placed := shop.called()[1].(service.PlaceRequest); placed.UserID != service.UserID(user) {
			t.Errorf("placed for %d, want %d", placed.UserID, user)
		}
		if got := a.send("GET", "/api/v1/admin/audit", "", "Authorization", "Bearer "+session.Token); got.status != 403 {
			t.Errorf("a guest is an admin: %d", got.status)
		}
	}
}

func TestNew_RefusedConfig(t *testing.T) {
	good := handler.Config{Shop: newFakeShop(), Keys: [][]byte{key}, Ready: ready, Log: noLog()}
	if _, err := handler.New(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*handler.Config){
		"no key":        func(c *handler.Config) { c.Keys = nil },
		"a short key":   func(c *handler.Config) { c.Keys = [][]byte{key, key[:31]} },
		"no shop":       func(c *handler.Config) { c.Shop = nil },
		"no readiness":  func(c *handler.Config) { c.Ready = nil },
		"nobody to log": func(c *handler.Config) { c.Log = nil },
	} {
		bad := good
		change(&bad)
		if _, err := handler.New(bad); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
