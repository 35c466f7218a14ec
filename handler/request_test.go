package handler_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"seckill/handler"
	"seckill/handler/token"
)

func TestDecode_RefusedBodies(t *testing.T) {
	shop := newFakeShop()
	a := serve(t, shop, nil)
	for _, c := range []struct {
		body   string
		status int
		code   string
		field  string
	}{
		{``, 415, "unsupported-media-type", ""}, // nothing, and not declared as anything
		{` `, 400, "malformed", ""},
		{`{"voucher_id":"7"`, 400, "malformed", ""},
		{`{"voucher_id":"7"}{}`, 400, "malformed", ""},
		{`{"voucher_id":"7"} x`, 400, "malformed", ""},
		{`["7"]`, 400, "malformed", ""},
		{`{"VOUCHER_ID":"7"}`, 400, "malformed", "VOUCHER_ID"},
		{`{"voucher_id":"7","qty":1}`, 400, "malformed", "qty"},
		{`{"voucher_id":"7","voucher_id":"8"}`, 400, "malformed", "voucher_id"},
		{"{\"voucher_id\":\"\xff\"}", 400, "malformed", ""},
		{`{"voucher_id":[`, 400, "malformed", ""},
		{`{"voucher_id":7}`, 422, "invalid", "voucher_id"},
		{`{"voucher_id":null}`, 422, "invalid", "voucher_id"},
		{`{"voucher_id":""}`, 422, "invalid", "voucher_id"},
		{`{"voucher_id":"007"}`, 422, "invalid", "voucher_id"},
		{`{"voucher_id":"9223372036854775808"}`, 422, "invalid", "voucher_id"},
		{`{}`, 422, "invalid", "voucher_id"},
		{`{"voucher_id":"` + strings.Repeat("7", 20<<10) + `"}`, 413, "too-large", ""},
	} {
		got := a.send("POST", place, c.body, as(t, 42, token.User)...)
		field := ""
		if c.field != "" {
			field = fmt.Sprintf(`"field":%q`, c.field)
		}
		if got.status != c.status || !strings.Contains(got.body, fmt.Sprintf(`"code":%q`, c.code)) || !strings.Contains(got.body, field) {
			t.Errorf("%.50q: %d %s", c.body, got.status, got.body)
		}
	}
	if shop.called() != nil {
		t.Errorf("called %v", shop.called())
	}
}

func TestDecode_RefusedHeaders(t *testing.T) {
	shop := newFakeShop()
	a := serve(t, shop, nil)
	for _, c := range []struct {
		name, value string
		status      int
	}{
		{"Content-Type", "", 415},
		{"Content-Type", "text/plain", 415},
		{"Content-Type", "application/json; charset=latin1", 415},
		{"Content-Type", "application/x-www-form-urlencoded", 415},
		{"Content-Type", "application/json;;", 415},
		{"Content-Encoding", "gzip", 415},
		{"Idempotency-Key", strings.Repeat("k", 65), 422},
		{"Idempotency-Key", "two words", 422},
		{"Idempotency-Key", "é", 422},
	} {
		got := a.send("POST", place, goodBody, append(as(t, 42, token.User), c.name, c.value)...)
		if got.status != c.status {
			t.Errorf("%s %q: %d %s", c.name, c.value, got.status, got.body)
		}
		if c.status == 422 && !strings.Contains(got.body, `"field":"Idempotency-Key"`) {
			t.Errorf("%s %q: %s", c.name, c.value, got.body)
		}
	}
	if got := a.raw("POST /api/v1/orders HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nIdempotency-Key: a\r\nIdempotency-Key: b\r\n" +
		"Authorization: " + as(t, 42, token.User)[1] + "\r\nContent-Length: 18\r\n\r\n" + goodBody); !strings.Contains(got, "422") {
		t.Errorf("two keys: %s", got)
	}
	if shop.called() != nil {
		t.Errorf("called %v", shop.called())
	}
}

// raw sends bytes and returns the first line of the answer.
func (a *api) raw(request string) string {
	a.t.Helper()
	line, _ := a.rawTimed(request)
	return line
}

func (a *api) rawTimed(request string) (line string, rest *bufio.Reader) {
	a.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(a.url, "http://"))
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		a.t.Fatal(err)
	}
	if _, err := io.WriteString(conn, request); err != nil {
		a.t.Fatal(err)
	}
	rest = bufio.NewReader(conn)
	line, err = rest.ReadString('\n')
	if err != nil {
		a.t.Fatal(err)
	}
	return line, rest
}

// A body that is too large is refused and the connection is closed. If its length is declared, the refusal does not wait
// for the body.
func TestReadBody_TooLarge(t *testing.T) {
	a := serve(t, newFakeShop(), func(c *handler.Config) { c.BodyLimit = 32 })
	head := "POST /api/v1/orders HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nAuthorization: " + as(t, 42, token.User)[1] + "\r\n"
	for name, request := range map[string]string{
		"declared": head + "Content-Length: 1000000000\r\n\r\n",
		"chunked":  head + "Transfer-Encoding: chunked\r\n\r\n40\r\n" + strings.Repeat(" ", 64) + "\r\n0\r\n\r\n",
	} {
		line, rest := a.rawTimed(request)
		header, err := io.ReadAll(rest)
		if !strings.Contains(line, "413") || err != nil || !strings.Contains(string(header), "Connection: close") {
			t.Errorf("%s: %s%s %v", name, line, header, err)
		}
	}
	if got := a.send("POST", place, goodBody+strings.Repeat(" ", 32-len(goodBody)), as(t, 42, token.User)...); got.status != 201 {
		t.Errorf("as large as it may be: %d %s", got.status, got.body)
	}
	chunked := head + "Transfer-Encoding: chunked\r\n\r\n12\r\n" + goodBody + "\r\n0\r\n\r\n"
	if line := a.raw(chunked); !strings.Contains(line, "201") {
		t.Errorf("a body in chunks: %s", line)
	}
}

// A body that ends early is refused, even if the part that arrived is valid JSON.
func TestReadBody_Incomplete(t *testing.T) {
	shop := newFakeShop()
	a := serve(t, shop, nil)
	conn, err := net.Dial("tcp", strings.TrimPrefix(a.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "POST /api/v1/orders HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nAuthorization: %s\r\nContent-Length: 30\r\n\r\n%s", as(t, 42, token.User)[1], goodBody)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 400") {
		t.Errorf("%s %v", answer, err)
	}
	if shop.called() != nil {
		t.Errorf("called %v", shop.called())
	}
}

func TestReadBody_Timeout(t *testing.T) {
	h := newHandler(t, newFakeShop(), nil)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: h, ReadTimeout: 50 * time.Millisecond}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()
	a := &api{t: t, url: "http://" + listener.Addr().String()}
	line := a.raw("POST /api/v1/orders HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nAuthorization: " +
		as(t, 42, token.User)[1] + "\r\nContent-Length: 18\r\n\r\n{")
	if !strings.Contains(line, "408") {
		t.Error(line)
	}
}

func TestNewServer_Limits(t *testing.T) {
	a := serve(t, newFakeShop(), nil)
	if line := a.raw("GET /healthz HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("x", 2*handler.MaxHeaderBytes) + "\r\n\r\n"); !strings.Contains(line, "431") {
		t.Errorf("a header without bounds: %s", line)
	}
	s := handler.NewServer(nil, noLog())
	if s.ReadHeaderTimeout <= 0 || s.ReadTimeout < s.ReadHeaderTimeout || s.IdleTimeout <= 0 {
		t.Errorf("%+v", s)
	}
	// An answer that the use case has found must still be sent.
	if s.WriteTimeout <= handler.ReadTimeout+12*time.Second {
		t.Errorf("WriteTimeout %v cuts off a slow order", s.WriteTimeout)
	}
}
