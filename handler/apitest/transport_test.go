package apitest

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// canned is a server that always answers the same.
type canned struct {
	status int
	header http.Header
	body   string
}

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	if c.header == nil {
		c.header = http.Header{}
	}
	return &http.Response{StatusCode: c.status, Header: c.header, Body: io.NopCloser(strings.NewReader(c.body)), Request: r}, nil
}

func as(mediaType string, more ...string) http.Header {
	h := http.Header{"Content-Type": {mediaType}}
	for i := 0; i < len(more); i += 2 {
		h.Set(more[i], more[i+1])
	}
	return h
}

const (
	order   = `{"id":"77","voucher_id":"7","user_id":"42","request_id":"77","status":"pending","price_cents":4900,"created_at":"2026-11-11T00:00:00Z"}`
	soldOut = `{"title":"Conflict","status":409,"code":"sold-out","detail":"sold out"}`
	busy    = `{"title":"Service Unavailable","status":503,"code":"busy","detail":"later","retry_after":1}`
)

var (
	problem = as("application/problem+json")
	created = as("application/json", "Location", "/api/v1/orders/77")
)

// The transport is of use only if it reports   about what it is there to find.
func TestTransport_Reports(t *testing.T) {
	for name, c := range map[string]struct {
		method, path, body string
		answer             canned
		reports            string
	}{
		"a good order":            {"POST", "/api/v1/orders", `{"voucher_id":"7"}`, canned{201, created, order}, ""},
		"a good refusal":          {"POST", "/api/v1/orders", `{"voucher_id":"7"}`, canned{409, problem, soldOut}, ""},
		"a bad request refused":   {"POST", "/api/v1/orders", `{"voucher_id":7}`, canned{422, problem, strings.Replace(soldOut, "sold-out", "invalid", 1)}, ""},
		"a bad request accepted":  {"POST", "/api/v1/orders", `{"voucher_id":7}`, canned{201, created, order}, "does not allow the request"},
		"an unknown field":        {"POST", "/api/v1/orders", `{"voucher_id":"7","qty":1}`, canned{201, created, order}, "does not allow the request"},
		"a body that is not JSON": {"POST", "/api/v1/orders", `{`, canned{201, created, order}, "does not allow the request"},
		"no body":                 {"POST", "/api/v1/orders", "", canned{201, created, order}, "does not allow the request"},
		"an undescribed status":   {"POST", "/api/v1/orders", `{"voucher_id":"7"}`, canned{418, problem, soldOut}, "status is not supported"},
		"no Location":             {"POST", "/api/v1/orders", `{"voucher_id":"7"}`, canned{201, as("application/json"), order}, "Location"},
		"no Retry-After":          {"POST", "/api/v1/orders", `{"voucher_id":"7"}`, canned{503, problem, busy}, "Retry-After"},
		"Retry-After in words":    {"POST", "/api/v1/orders", `{"voucher_id":"7"}`, canned{503, as("application/problem+json", "Retry-After", "soon"), busy}, "Retry-After"},
		"a field too many":        {"POST", "/api/v1/orders", `{"voucher_id":"7"}`, canned{201, created, strings.Replace(order, "{", `{"secret":1,`, 1)}, "doesn't match schema"},
		"a field too few":         {"POST", "/api/v1/orders", `{"voucher_id":"7"}`, canned{201, created, strings.Replace(order, `"status":"pending",`, "", 1)}, "doesn't match schema"},
		"an id as a number":       {"POST", "/api/v1/orders", `{"voucher_id":"7"}`, canned{201, created, strings.Replace(order, `"77"`, `77`, 1)}, "doesn't match schema"},
		"an invalid time":         {"POST", "/api/v1/orders", `{"voucher_id":"7"}`, canned{201, created, strings.Replace(order, `T00:00:00Z`, ``, 1)}, "doesn't match schema"},
		"an undescribed code":     {"POST", "/api/v1/orders", `{"voucher_id":"7"}`, canned{409, problem, strings.Replace(soldOut, "sold-out", "gone", 1)}, "doesn't match schema"},
		"an error in plain JSON":  {"POST", "/api/v1/orders", `{"voucher_id":"7"}`, canned{409, as("application/json"), soldOut}, "Content-Type"},
		"an error in plain text":  {"GET", "/api/v1/nothing", "", canned{404, as("text/plain"), "404 page not found"}, `an error of type "text/plain"`},
		"an unknown path":         {"GET", "/api/v1/nothing", "", canned{404, problem, strings.Replace(soldOut, "sold-out", "not-found", 1)}, ""},
		"an unknown path served":  {"GET", "/api/v1/nothing", "", canned{200, created, "{}"}, "does not have this operation"},
		"an unknown method":       {"PUT", "/api/v1/orders", "", canned{405, as("application/problem+json", "Allow", "GET, POST"), strings.Replace(soldOut, "sold-out", "method-not-allowed", 1)}, ""},
		"405 without Allow":       {"PUT", "/api/v1/orders", "", canned{405, problem, soldOut}, "405 without Allow"},
		"an unknown page":         {"GET", "/nothing", "", canned{404, as("text/plain"), "404"}, ""},
		"a query that is refused": {"GET", "/api/v1/vouchers?limit=0", "", canned{200, as("application/json"), `{"vouchers":[]}`}, "does not allow the request"},
	} {
		description, err := load()
		if err != nil {
			t.Fatal(err)
		}
		reported := ""
		transport := &transport{description: description, base: c.answer, report: func(err error) { reported += err.Error() }}
		r, err := http.NewRequestWithContext(t.Context(), c.method, "http://shop"+c.path, strings.NewReader(c.body))
		if err != nil {
			t.Fatal(err)
		}
		if c.body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		resp, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(resp.Body); string(body) != c.answer.body || err != nil {
			t.Errorf("%s: the caller got %q %v", name, body, err)
		}
		if (c.reports == "") != (reported == "") || !strings.Contains(reported, c.reports) {
			t.Errorf("%s: reported %q, want %q", name, reported, c.reports)
		}
	}
}
