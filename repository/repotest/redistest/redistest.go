// Package redistest gives tests real Redis servers, as processes of their own that end with the test.
package redistest

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/repository/repotest/orphan"
)

// Server is a redis-server on a loopback port.
type Server struct {
	Addr string

	t           testing.TB
	first, args []string
	dir         string
	cmd         *exec.Cmd
	done        chan struct{} // closed when cmd has ended
}

// Binary returns the path of redis-server. Without one, the test fails if SECKILL_TEST_REQUIRED is 1, and is skipped
// otherwise.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		missing(t, "redis-server is not on PATH; cmd/test provides it")
	}
	return path
}

func missing(t testing.TB, why string) {
	t.Helper()
	if os.Getenv("SECKILL_TEST_REQUIRED") == "1" {
		t.Fatal(why)
	}
	t.Skip(why)
}

// Addr returns the address of a Redis for tests that need one to talk to, but not to stop: the one that
// SECKILL_TEST_REDIS_ADDR names, or else a server of the test's own. What is in it may be another test's.
func Addr(t testing.TB) string {
	t.Helper()
	if addr := os.Getenv("SECKILL_TEST_REDIS_ADDR"); addr != "" {
		return addr
	}
	return Start(t).Addr
}

// Start starts an empty server without persistence, given additional arguments of redis-server. It ends with the test.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return start(t, nil, args...)
}

// start gives redis-server the arguments first, our own, and args.
func start(t testing.TB, first []string, args ...string) *Server {
	t.Helper()
	Binary(t)
	s := &Server{Addr: freeAddr(t), t: t, first: first, args: args, dir: t.TempDir()}
	t.Cleanup(s.Kill)
	s.Restart()
	return s
}

// Restart starts the server again at the same address, after Kill, and waits until it answers. It is empty, unless the
// arguments given to Start make it persist.
func (s *Server) Restart() {
	s.t.Helper()
	own := []string{"--bind", "127.0.0.1", "--port", portOf(s.Addr), "--dir", s.dir, "--save", "", "--appendonly", "no",
		"--logfile", filepath.Join(s.dir, "redis.log"), "--repl-diskless-sync-delay", "0"}
	s.cmd = exec.Command(Binary(s.t), slices.Concat(s.first, own, s.args)...)
	orphan.Prevent(s.cmd)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.done = make(chan struct{})
	go func(cmd *exec.Cmd, done chan struct{}) {
		_ = cmd.Wait()
		close(done)
	}(s.cmd, s.done)
	s.await()
}

// await waits until the server answers.
func (s *Server) await() {
	s.t.Helper()
	client := s.dial()
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for {
		err := client.Ping(ctx).Err()
		if err == nil || strings.HasPrefix(err.Error(), "NOAUTH") {
			return
		}
		select {
		case <-s.done:
			log, _ := os.ReadFile(filepath.Join(s.dir, "redis.log"))
			s.t.Fatalf("redis-server ended at once: %s", log)
		case <-ctx.Done():
			s.t.Fatalf("redis-server does not answer: %v", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Kill ends the server as a crash would, paused or not, and waits for its end. A second call does nothing.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	<-s.done
	s.cmd = nil
}

// Pause stops the process, which keeps its connections, until Resume.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Resume ends Pause.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// Client returns a client for looking at the server from the test's side, closed with the test.
func (s *Server) Client() *redis.Client { return Client(s.t, s.Addr) }

// Client returns a client for looking at the server at addr, closed with the test.
func Client(t testing.TB, addr string) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: addr, DialerRetries: 1, PoolSize: 4})
	t.Cleanup(func() { client.Close() })
	return client
}

func (s *Server) dial() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: s.Addr, DialerRetries: 1, MaxRetries: -1, DialTimeout: time.Second,
		ReadTimeout: time.Second})
}

// freeAddr returns a loopback address that was free a moment ago.
func freeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
