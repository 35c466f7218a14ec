package dbtest

import (
	"context"
	"errors"
	"testing"
	"time"

	"seckill/repository/repotest/dbserver"
)

// Server is a database server that a test has for itself, to break it. Its methods fail the test on an error,
// so call them from the test's own goroutine.
type Server struct {
	Engine  string // "mariadb" or "mysql"
	Addr    string // host:port on loopback, the same after every Restart
	Version string // as the server itself says it
	t       *testing.T
	server  *dbserver.Server
}

// StartServer starts a server for this test alone, with the same settings as the shared ones, and removes it
// when the test ends. It takes some seconds.
func StartServer(t *testing.T, engine string) *Server {
	t.Helper()
	s, err := dbserver.Start(t.Context(), dbserver.Engine(engine))
	if errors.Is(err, dbserver.ErrUnavailable) {
		unavailable(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Remove(context.Background()); err != nil {
			t.Errorf("remove %s: %v", engine, err)
		}
	})
	return &Server{Engine: engine, Addr: s.Addr, Version: s.Version, t: t, server: s}
}

// EachServer runs test as a subtest with a server of its own of every engine.
func EachServer(t *testing.T, test func(t *testing.T, s *Server)) {
	t.Helper()
	for _, engine := range dbserver.Engines() {
		t.Run(string(engine), func(t *testing.T) { test(t, StartServer(t, string(engine))) })
	}
}

// DSN returns the go-sql-driver data source name of a database on the server; name may be empty.
func (s *Server) DSN(name string) string { return s.server.DSN(name) }

// Kill ends the server at once, as kill -9 does, and returns when it is gone.
func (s *Server) Kill() { s.t.Helper(); s.do("kill", s.server.Kill) }

// Pause freezes the server: connections stay open and nobody answers.
func (s *Server) Pause() { s.t.Helper(); s.do("pause", s.server.Pause) }

// Resume lets a paused server go on.
func (s *Server) Resume() { s.t.Helper(); s.do("resume", s.server.Resume) }

// Restart starts the server again with its data, killing it first where it still runs, and returns when it
// accepts connections.
func (s *Server) Restart() { s.t.Helper(); s.do("restart", s.server.Restart) }

// Create makes a fresh database on the server. It goes with the server.
func (s *Server) Create() Database {
	s.t.Helper()
	return create(s.t, s.Engine, s.DSN(""))
}

func (s *Server) do(what string, step func(context.Context) error) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	if err := step(ctx); err != nil {
		s.t.Fatalf("%s %s: %v", what, s.Engine, err)
	}
}
