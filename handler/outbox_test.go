package handler_test

import (
	"testing"

	"seckill/handler"
	"seckill/handler/token"
	"seckill/service"
)

func TestOutbox_Admin(t *testing.T) {
	a := serve(t, newFakeShop(), nil)
	away := serve(t, newFakeShop(), func(c *handler.Config) { c.Outbox = fakeOutbox{err: service.ErrUnavailable} })
	admin, user := as(t, 1, token.Admin), as(t, 2, token.User)
	const event = `{"event_id":"7","type":"ORDER_PAID","order_id":"5","version":2,"state":"failed","attempts":8,` +
		`"due":"1970-01-01T00:01:00Z","created_at":"1970-01-01T00:00:00Z","payload":{"a":1}}`
	for _, tt := range []struct {
		name         string
		at           *api
		method, path string
		as           []string
		status       int
		body         string // "": whatever it is
	}{
		{"what was given up", a, "GET", "?limit=2", admin, 200, `{"events":[` + event + `,` + event + `],"next":"7"}`},
		{"the last page", a, "GET", "?state=failed", admin, 200, `{"events":[` + event + `,` + event + `,` + event + `]}`},
		{"nothing", a, "GET", "?state=sent", admin, 200, `{"events":[]}`},
		{"no such state", a, "GET", "?state=lost", admin, 422, ""},
		{"one", a, "GET", "/7", admin, 200, event},
		{"no such event", a, "GET", "/8", admin, 404, ""},
		{"no id", a, "GET", "/x", admin, 404, ""},
		{"again", a, "POST", "/7/retry", admin, 200, `{"due":1}`},
		{"nothing to do", a, "POST", "/8/retry", admin, 200, `{"due":0}`},
		{"again without an id", a, "POST", "/x/retry", admin, 404, ""},
		{"not for users", a, "GET", "", user, 403, ""},
		{"list while away", away, "GET", "", admin, 503, ""},
		{"show while away", away, "GET", "/7", admin, 503, ""},
		{"retry while away", away, "POST", "/7/retry", admin, 503, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.at.send(tt.method, "/api/v1/admin/outbox"+tt.path, "", tt.as...)
			if got.status != tt.status || tt.body != "" && got.body != tt.body {
				t.Errorf("got %d %s", got.status, got.body)
			}
		})
	}
}
