// Package loadtest sends load to a shop and says what came back. It speaks HTTP and knows the shop as its users do: what
// is inside is none of its business, so that what it finds is what they would.
package loadtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
)

// Client sends requests to one shop over connections that are kept alive. It is safe for use by many goroutines.
//
// It never repeats a request by itself: that is for whoever counts them to decide.
type Client struct {
	http    fasthttp.HostClient
	base    string
	timeout time.Duration
	token   func(user int64) string
	known   problems

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

// ClientOptions bound what a client does. The zero value of a field stands for its default.
type ClientOptions struct {
	Timeout time.Duration // of a request, until its outcome is unknown; default 15s, more than the shop takes
	// Token returns the bearer token of a user; it is called for each request and should remember what it signed.
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
		base: strings.TrimSuffix(u.Scheme+"://"+u.Host+u.Path, "/"), timeout: opts.Timeout, token: opts.Token,
		conns: map[net.Conn]struct{}{},
	}
	if c.timeout <= 0 {
		c.timeout = 15 * time.Second
	}
	c.http = fasthttp.HostClient{
		Addr: addr, IsTLS: u.Scheme == "https", Dial: c.dial, MaxConns: 1 << 16,
		MaxIdleConnDuration: 30 * time.Second, // less than the shop's own, so that it is not cut while in use
		// One attempt: its own retries would hide failures.
		MaxIdemponentCallAttempts: 1,
		NoDefaultUserAgentHeader:  true,
		DisablePathNormalizing:    true,
	}
	return c, nil
}

// unreachableError says that a request was not sent.
type unreachableError struct{ error }

func (e unreachableError) Unwrap() error { return e.error }

// dialTimeout is how long a connection may take.
const dialTimeout = 3 * time.Second

func (c *Client) dial(addr string) (net.Conn, error) {
	conn, err := net.DialTimeout("tcp", addr, dialTimeout)
	if err != nil {
		return nil, unreachableError{err}
	}
	tracked := &trackedConn{Conn: conn, client: c}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conns[tracked] = struct{}{}
	return tracked, nil
}

// trackedConn is a connection that Abort finds.
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

// Abort cuts all connections: requests that wait for an answer get Broken.
func (c *Client) Abort() {
	c.mu.Lock()
	conns := make([]net.Conn, 0, len(c.conns))
	for conn := range c.conns {
		conns = append(conns, conn)
	}
	c.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close()
	}
}

// Close closes the connections. Nothing may be in flight.
func (c *Client) Close() {
	c.http.CloseIdleConnections()
	c.Abort()
}

// request is one request to be sent.
type request struct {
	method, path string
	user         int64 // 0: nobody
	key          string
	body         []byte
}

// send sends a request and keeps the answer's body only if parse says so. It blocks for the client's time-out at most.
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
		c.explain(&a, resp.Body())
	}
	return a
}

// explain classifies an answer that is not a success.
func (c *Client) explain(a *Answer, body []byte) {
	p := c.known.parse(body)
	switch {
	case p.Code != "":
		a.Outcome, a.Order, a.RequestID = p.Code, p.Order.ID, p.RequestID
	case a.Status >= 500:
		a.Outcome = Gateway
	default:
		a.Outcome = Unexpected
	}
	if a.Outcome.Class() != Refused || a.Status != 409 {
		a.Body = append([]byte(nil), body...)
	}
}

// outcomeOf explains why there is no answer.
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

// keep keeps the body of an answer.
func keep(a *Answer, body []byte) { a.Body = append([]byte(nil), body...) }

// Place asks for one unit of a voucher; key may be empty.
func (c *Client) Place(user int64, voucher, key string) Answer {
	body := make([]byte, 0, 48)
	body = append(body, `{"voucher_id":"`...)
	body = append(body, voucher...)
	body = append(body, `"}`...)
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

// Pay pays an order. paymentID names a payment that has happened already; "" for none.
func (c *Client) Pay(user int64, order, paymentID string) Answer {
	body := []byte("{}")
	if paymentID != "" {
		body, _ = json.Marshal(map[string]string{"payment_id": paymentID}) // strings always are JSON
	}
	return c.change(user, order, "pay", body)
}

// Cancel cancels an order.
func (c *Client) Cancel(user int64, order string) Answer {
	return c.change(user, order, "cancel", []byte("{}"))
}

func (c *Client) change(user int64, order, verb string, body []byte) Answer {
	a := c.send(request{method: "POST", path: "/api/v1/orders/" + order + "/" + verb, user: user, body: body}, keep)
	a.Order = order
	return a
}

// Look reads an order.
func (c *Client) Look(user int64, order string) Answer {
	a := c.send(request{method: "GET", path: "/api/v1/orders/" + order, user: user}, keep)
	a.Order = order
	return a
}

// Ready waits until the shop takes orders, or ctx ends.
func (c *Client) Ready(ctx context.Context) error {
	for {
		a := c.send(request{method: "GET", path: "/readyz"}, keep)
		if a.Outcome == Done {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(a.error("readyz"), context.Cause(ctx))
		case <-time.After(50 * time.Millisecond):
		}
	}
}
