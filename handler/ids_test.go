package handler_test

import (
	"testing"

	"seckill/handler"
	"seckill/handler/token"
	"seckill/service/idgen"
)

func TestIDs_Admin(t *testing.T) {
	const id = idgen.ID(3<<12 | 7) // worker 3, sequence 7, at the epoch of the default layout
	a := serve(t, newFakeShop(), nil)
	segment := serve(t, newFakeShop(), func(c *handler.Config) { c.IDLayout = nil })
	away := serve(t, newFakeShop(), func(c *handler.Config) { c.IDs = fakeIDs{err: idgen.ErrLeaseLost} })
	admin, user := as(t, 1, token.Admin), as(t, 2, token.User)
	for _, tt := range []struct {
		name         string
		at           *api
		method, path string
		as           []string
		status       int
		body         string // "": whatever it is
	}{
		{"one", a, "POST", "", admin, 200, `{"ids":["1"]}`},
		{"some", a, "POST", "?n=3", admin, 200, `{"ids":["1","2","3"]}`},
		{"none", a, "POST", "?n=0", admin, 422, ""},
		{"too many", a, "POST", "?n=10001", admin, 422, ""},
		{"not a number", a, "POST", "?n=x", admin, 422, ""},
		{"store away", away, "POST", "", admin, 503, ""},
		{"not for users", a, "POST", "", user, 403, ""},
		{"a snowflake", a, "GET", "/" + id.String(), admin, 200,
			`{"id":"` + id.String() + `","kind":"snowflake","time":"2025-01-01T00:00:00Z","data_center":0,"worker":3,"sequence":7}`},
		{"a segment's", segment, "GET", "/7", admin, 200, `{"id":"7","kind":"segment"}`},
		{"no id", a, "GET", "/007", admin, 404, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := tt.at.send(tt.method, "/api/v1/admin/ids"+tt.path, "", tt.as...)
			if got.status != tt.status || tt.body != "" && got.body != tt.body {
				t.Errorf("got %d %s", got.status, got.body)
			}
		})
	}
}
