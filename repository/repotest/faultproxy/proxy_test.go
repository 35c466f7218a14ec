package faultproxy

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// echo is a server that answers each line with "ok <line>", and counts them.
func echo(t *testing.T) (addr string, lines *atomic.Int32) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	lines = new(atomic.Int32)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				in := bufio.NewReader(conn)
				for line, err := in.ReadString('\n'); err == nil; line, err = in.ReadString('\n') {
					lines.Add(1)
					io.WriteString(conn, "ok "+line)
				}
			}()
		}
	}()
	return l.Addr().String(), lines
}

type client struct {
	net.Conn
	in *bufio.Reader
}

func dial(t *testing.T, p *Proxy) client {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return client{conn, bufio.NewReader(conn)}
}

// ask sends a line and returns the answer, waiting for it for a while.
func (c client) ask(line string, wait time.Duration) (string, error) {
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		return "", err
	}
	c.SetReadDeadline(time.Now().Add(wait))
	answer, err := c.in.ReadString('\n')
	return strings.TrimSpace(answer), err
}

func (c client) want(t *testing.T, line string) {
	t.Helper()
	if answer, err := c.ask(line, 5*time.Second); err != nil || answer != "ok "+line {
		t.Fatalf("answer %q, %v", answer, err)
	}
}

func (c client) wantGone(t *testing.T, line string) {
	t.Helper()
	answer, err := c.ask(line, 5*time.Second)
	var late net.Error
	if err == nil || errors.As(err, &late) && late.Timeout() {
		t.Fatalf("answer %q, %v; want a closed connection", answer, err)
	}
}

func TestDropReplyAfterTheServerDidItsWork(t *testing.T) {
	addr, lines := echo(t)
	p := New(t, addr)
	c := dial(t, p)
	c.want(t, "begin")
	fault := p.DropReply(Contains("commit"))
	c.want(t, "insert")
	c.wantGone(t, "COMMIT 7")
	fault.Wait(t)
	if lines.Load() != 3 {
		t.Errorf("the server saw %d lines, want 3", lines.Load())
	}
	dial(t, p).want(t, "commit again") // a fault happens once
	if s := p.Stats(); s.Accepted != 2 || s.Dropped != 1 || s.Cut != 1 {
		t.Errorf("stats %+v", s)
	}
}

func TestSwallowReplyKeepsTheConnection(t *testing.T) {
	addr, lines := echo(t)
	p := New(t, addr)
	c := dial(t, p)
	fault := p.SwallowReply(Contains("x"))
	var late net.Error
	if _, err := c.ask("x", 50*time.Millisecond); !errors.As(err, &late) || !late.Timeout() {
		t.Fatalf("error %v, want a timeout", err)
	}
	fault.Wait(t)
	if lines.Load() != 1 || p.Stats().Open != 1 {
		t.Errorf("%d lines, stats %+v", lines.Load(), p.Stats())
	}
}

func TestCutOnRequestBeforeItArrives(t *testing.T) {
	addr, lines := echo(t)
	p := New(t, addr)
	c := dial(t, p)
	c.want(t, "one")
	fault := p.CutOnRequest(Contains("row 2"))
	io.WriteString(c, "insert row 1") // split: the match spans both
	c.wantGone(t, ", row 2")
	fault.Wait(t)
	if lines.Load() != 1 {
		t.Errorf("the server saw %d lines, want 1", lines.Load())
	}
}

func TestHangRefuseDelayCut(t *testing.T) {
	addr, _ := echo(t)
	p := New(t, addr)
	c := dial(t, p)
	c.want(t, "one")

	p.Hang()
	var late net.Error
	if _, err := c.ask("two", 50*time.Millisecond); !errors.As(err, &late) || !late.Timeout() {
		t.Fatalf("error %v, want a timeout", err)
	}
	p.Resume()
	c.SetReadDeadline(time.Now().Add(5 * time.Second))
	if answer, err := c.in.ReadString('\n'); err != nil || answer != "ok two\n" {
		t.Fatalf("after Resume: %q, %v", answer, err)
	}

	p.Refuse()
	if _, err := net.Dial("tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Fatalf("error %v, want refused", err)
	}
	c.want(t, "three")
	p.Accept()
	dial(t, p).want(t, "four")

	p.Delay(30 * time.Millisecond)
	start := time.Now()
	c.want(t, "five")
	if d := time.Since(start); d < 60*time.Millisecond {
		t.Errorf("answered after %v, want at least 60ms", d)
	}
	p.Delay(0)

	if n := p.Cut(); n < 1 || n > 2 { // the second one may have been accepted just now
		t.Errorf("cut %d connections", n)
	}
	c.wantGone(t, "six")
	dial(t, p).want(t, "seven")
}
