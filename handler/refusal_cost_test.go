package handler_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"syscall"
	"testing"
	"time"

	"seckill/handler"
	"seckill/handler/token"
)

// cost is the cost of a round. CPU time, which includes the clients, varies less on a busy machine.
type cost struct{ wall, cpu time.Duration }

func (c cost) plus(d cost) cost { return cost{c.wall + d.wall, c.cpu + d.cpu} }

func cpuTime(b *testing.B) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// race is a server with its connections.
type race struct {
	conns   []net.Conn
	request []byte
}

func newRace(b *testing.B, h http.Handler, clients int) *race {
	b.Helper()
	server := httptest.NewUnstartedServer(nil)
	server.Config = handler.NewServer(h, noLog())
	server.Start()
	b.Cleanup(server.Close)
	r := &race{request: fmt.Appendf(nil,
		"POST %s HTTP/1.1\r\nHost: shop\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		place, sign(b, token.Claims{User: 42, Role: token.User}), len(goodBody), goodBody)}
	for range clients {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = conn.Close() })
		r.conns = append(r.conns, conn)
	}
	return r
}

// run sends a number of requests over all connections, each waiting for its answer before it sends the next, and
// returns what that took.
func (r *race) run(b *testing.B, requests int) cost {
	start, cpu := time.Now(), cpuTime(b)
	var all sync.WaitGroup
	failed := make(chan error, len(r.conns))
	for _, conn := range r.conns {
		all.Go(func() {
			if err := r.talk(conn, requests/len(r.conns)); err != nil {
				failed <- err
			}
		})
	}
	all.Wait()
	took := cost{time.Since(start), cpuTime(b) - cpu}
	select {
	case err := <-failed:
		b.Fatal(err)
	default:
	}
	return took
}

// talk is a cheap client: each answer is one packet.
func (r *race) talk(conn net.Conn, requests int) error {
	answer := make([]byte, 4096)
	for range requests {
		if _, err := conn.Write(r.request); err != nil {
			return err
		}
		n, err := conn.Read(answer)
		if err != nil {
			return err
		}
		if !bytes.HasPrefix(answer[:n], []byte("HTTP/1.1 409 ")) || !bytes.HasSuffix(answer[:n], []byte("}")) {
			return errors.New("not a refusal: " + string(answer[:n]))
		}
	}
	return nil
}

// The clients above read each answer with one call.
func TestPlaceOrder_RefusalFitsInOnePacket(t *testing.T) {
	h := newHandler(t, alwaysSoldOut{}, nil)
	w := record(h, "POST", place, goodBody, as(t, 42, token.User)...)
	var wire bytes.Buffer
	if err := w.Result().Write(&wire); err != nil {
		t.Fatal(err)
	}
	if _, err := http.ReadResponse(bufio.NewReader(&wire), nil); err != nil || wire.Len() > 1400 {
		t.Errorf("%d bytes, %v", wire.Len(), err)
	}
}
