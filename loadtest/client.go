// Package loadtest is the load generator: it sends load to a shop over HTTP and records every answer. It knows only the
// API, so it measures what users would see.
//
// A Client sends requests. Buyers are the users of a load; a Scenario says what they do, and a Load how many come and how
// fast. A Recorder counts and times the answers, and can write them to a Journal. Settle repeats requests whose outcome is
// unknown.
package loadtest

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// Client sends requests to one shop over connections that are kept alive. It is safe for concurrent use. It never
// repeats a request.
type Client struct {
	http    fasthttp.HostClient
	base    string
	timeout time.Duration
	token   func(user int64) string

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// ClientOptions configure a client. Zero values stand for the defaults.
type ClientOptions struct {
	Timeout time.Duration // of a request; then its outcome is unknown. Default 15s, more than the shop's own time-outs
	// Token returns the bearer token of a user; it is called for each request and should cache its tokens.
	Token func(user int64) string
}

// NewClient returns a client of the shop at base, such as http://127.0.0.1:8080. Close it.
func NewClient(base string, opts ClientOptions) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, fmt.Errorf("url %q: must look like http://host:port", base)
	}
	addr := u.Host
	if u.Port() == "" {
		addr = net.JoinHostPort(u.Hostname(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	}
	c := &Client{
		base: strings.TrimSuffix(u.Scheme+"://"+u.Host+u.Path, "/"), timeout: cmp.Or(opts.Timeout, 15*time.Second), token: opts.Token,
		conns: map[net.Conn]struct{}{},
	}
	c.http = fasthttp.HostClient{
		Addr: addr, IsTLS: u.Scheme == "https", Dial: c.dial, MaxConns: 1 << 16,
		MaxIdleConnDuration:       30 * time.Second, // less than the shop's own, so that the shop does not close it while it is in use
		MaxIdemponentCallAttempts: 1,                // the client's own retries would hide failures
		NoDefaultUserAgentHeader:  true,
		DisablePathNormalizing:    true,
	}
	return c, nil
}

// unreachableError says that a request was not sent.
type unreachableError struct{ error }

func (e unreachableError) Unwrap() error { return e.error }

func (c *Client) dial(addr string) (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", addr, 3*time.Second)
	if err != nil {
		return nil, unreachableError{err}
	}
	tracked := &trackedConn{Conn: conn, client: c}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns[tracked] = struct{}{}
	return tracked, nil
}

// trackedConn is a connection that Abort can close.
type trackedConn struct {
	net.Conn
	client *Client
}

func (t *trackedConn) Close() error {
	t.client.mu.Lock()
	delete(t.client.conns, t)
	t.client.mu.Unlock()
	return t.Conn.Close()
}

// Abort closes all connections. Requests that wait for an answer get Broken.
func (c *Client) Abort() {
	c.mu.Lock()
	conns := slices.Collect(maps.Keys(c.conns))
	c.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close()
	}
}

// Close closes the connections. No request may be under way.
func (c *Client) Close() {
	c.http.CloseIdleConnections()
	c.Abort()
}

// request is a request to be sent.
type request struct {
	method, path string
	user         int64 // 0: without a token
	key          string
	body         []byte
}

// send sends a request; parse reads the body of a successful answer. It blocks for the client's time-out at most.
func (c *Client) send(r request, parse func(*Answer, []byte)) Answer {
	req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
	defer fasthttp.ReleaseRequest(req)
	defer fasthttp.ReleaseResponse(resp)
	req.Header.SetMethod(r.method)
	req.SetRequestURI(c.base + r.path)
	if r.user != 0 && c.token != nil {
		req.Header.Set("Authorization", "Bearer "+c.token(r.user))
	}
	if r.key != "" {
		req.Header.Set("Idempotency-Key", r.key)
	}
	if r.body != nil {
		req.Header.SetContentType("application/json")
		req.SetBodyRaw(r.body)
	}
	a := Answer{Start: time.Now()}
	a.Err = c.http.DoTimeout(req, resp, c.timeout)
	a.Took = time.Since(a.Start)
	if a.Err != nil {
		a.Outcome = outcomeOf(a.Err)
		return a
	}
	a.Status = resp.StatusCode()
	if a.Status >= 200 && a.Status < 300 {
		a.Outcome = Done
		parse(&a, resp.Body())
	} else {
		parseError(&a, resp.Body())
	}
	return a
}

// parseError reads the body of an answer that is not a success.
func parseError(a *Answer, body []byte) {
	p := parseProblem(body)
	switch {
	case p.Code != "":
		a.Outcome, a.Order, a.RequestID = p.Code, p.Order.ID, p.RequestID
	case a.Status >= 500:
		a.Outcome = Gateway
	default:
		a.Outcome = Unexpected
	}
	if a.Outcome.Class() != Refused || a.Status != 409 {
		keepBody(a, body)
	}
}

// outcomeOf returns the outcome of a request without an answer.
func outcomeOf(err error) Outcome {
	var unreachable unreachableError
	var timeout net.Error
	switch {
	case errors.As(err, &unreachable), errors.Is(err, fasthttp.ErrNoFreeConns):
		return Unreachable
	case errors.Is(err, fasthttp.ErrTimeout), errors.As(err, &timeout) && timeout.Timeout():
		return Timeout
	}
	return Broken
}

// keepBody copies the body, which the HTTP client reuses.
func keepBody(a *Answer, body []byte) { a.Body = append([]byte(nil), body...) }

// Place orders one unit of a voucher; key may be empty.
func (c *Client) Place(user int64, voucher, key string) Answer {
	body := []byte(`{"voucher_id":"` + voucher + `"}`)
	return c.send(request{method: "POST", path: "/api/v1/orders", user: user, key: key, body: body}, parsePlaced)
}

func parsePlaced(a *Answer, body []byte) {
	switch a.Status {
	case 201:
		a.Outcome = Placed
	case 200:
		a.Outcome = Replayed
	default:
		a.Outcome = Unexpected
		return
	}
	if a.Order, a.Err = parseOrderID(body); a.Err != nil {
		a.Outcome = Unexpected
	}
}

// Pay pays an order.
func (c *Client) Pay(user int64, order string) Answer {
	return c.change(user, order, "pay")
}

// Cancel cancels an order.
func (c *Client) Cancel(user int64, order string) Answer {
	return c.change(user, order, "cancel")
}

func (c *Client) change(user int64, order, verb string) Answer {
	a := c.send(request{method: "POST", path: "/api/v1/orders/" + order + "/" + verb, user: user, body: []byte("{}")}, keepBody)
	a.Order = order
	return a
}

// Read reads an order.
func (c *Client) Read(user int64, order string) Answer {
	a := c.send(request{method: "GET", path: "/api/v1/orders/" + order, user: user}, keepBody)
	a.Order = order
	return a
}
