package app

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"
)

// Streams do not delay the shutdown, not even the stream of a viewer who reads nothing, and they get the last event.
func TestBoard_StreamsEndAtShutdown(t *testing.T) {
	shop := open(t, defaults(t))
	v := watchBoard(t, shop, "")
	deaf := deafViewer(t, shop)
	v.until(t, "both watch", func(s *boardState) bool { return s.Figures["viewers"] == 2 })
	for round := range 4 { // more than the buffers between the shop and the deaf one hold
		for mark := range 100 {
			shop.board.Mark(fmt.Sprintf("%d %d %s", round, mark, strings.Repeat("x", 8000)))
		}
		last := fmt.Sprintf("%d 99 ", round)
		v.until(t, "the marks are there", func(s *boardState) bool {
			return strings.HasPrefix(s.Events[len(s.Events)-1].What, last)
		})
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if err := shop.Close(ctx); err != nil {
		t.Fatalf("the shop was held up: %v", err)
	}
	if err := <-v.ended; err != nil {
		t.Errorf("the stream was cut: %v", err)
	}
	if v.mu.Lock(); !v.state.has("draining") {
		t.Errorf("the last word is missing: %+v", v.state.Events)
	}
	v.mu.Unlock()
	_ = deaf.SetReadDeadline(time.Now().Add(30 * time.Second))
	heard, err := io.ReadAll(deaf)
	if err != nil && !strings.Contains(err.Error(), "reset") {
		t.Errorf("the connection of the one who reads nothing: %v", err)
	}
	if strings.Contains(string(heard), "draining") {
		t.Errorf("the one who reads nothing was not stuck: %d bytes fit into its buffers", len(heard))
	}
}

// deafViewer asks for the stream and reads nothing.
func deafViewer(t *testing.T, shop *App) net.Conn {
	t.Helper()
	u, err := url.Parse(shop.URL())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := fmt.Fprintf(conn, "GET /api/v1/board/stream HTTP/1.1\r\nHost: %s\r\n\r\n", u.Host); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestBoard_Access(t *testing.T) {
	for _, c := range []struct {
		board    string
		embedded bool
		nobody   string // what somebody without a token gets
	}{
		{"auto", true, "200"}, {"auto", false, "unauthenticated"}, {"public", false, "200"}, {"admin", true, "unauthenticated"}, {"off", true, "not-found"},
	} {
		opts := defaults(t)
		opts.Board.Board = c.board
		if !c.embedded {
			opts.Servers.MySQLDSN = "is asked for nothing here"
		}
		switch admins := opts.boardAdminOnly(); {
		case c.board == "off":
		case admins != (c.nobody == "unauthenticated"):
			t.Errorf("%+v: for admins only: %v", c, admins)
		}
		if !c.embedded {
			continue
		}
		shop := open(t, opts)
		response, err := fast.Get(shop.URL() + "/api/v1/board")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		_ = response.Body.Close()
		if err != nil || response.StatusCode == 200 != (c.nobody == "200") || response.StatusCode != 200 && !strings.Contains(string(body), c.nobody) {
			t.Errorf("%+v: %d %s %v", c, response.StatusCode, body, err)
		}
	}
}
