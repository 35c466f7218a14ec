// Package dbserver starts real MySQL and MariaDB servers for tests, and breaks them on request: killed,
// frozen, and restarted with their data. A server listens on loopback only, has a root account without a
// password, and loses its data when it is removed.
//
// Tests use it through package dbtest; cmd/test uses it for the servers that all tests share.
package dbserver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/go-sql-driver/mysql"
)

// ErrUnavailable means that this machine cannot run the requested engine.
var ErrUnavailable = errors.New("database server not available")

// startLimit bounds how long a server may take until it accepts connections. An official image fills its
// data directory first, which takes most of a minute on a slow disk.
const startLimit = 3 * time.Minute

// runner runs a server as a process or in a container.
type runner interface {
	start(ctx context.Context) error // fills the data directory where that was not done yet
	alive(ctx context.Context) error // nil, or why the server is gone
	kill(ctx context.Context) error  // returns when the server is gone; its data stays
	pause(ctx context.Context) error
	resume(ctx context.Context) error
	remove(ctx context.Context) error // kills it and deletes its data
	how() string
}

// Server is one running database server. Its methods must not be called at the same time, except that
// Addr, DSN, How and Version are safe beside the others.
type Server struct {
	Engine  Engine
	Addr    string // host:port on loopback, the same after every Restart
	Version string // as the server reports it
	run     runner
	removed bool
}

// Start starts a server for the caller alone and returns when it accepts connections. The caller has to
// Remove it. It fails with ErrUnavailable if the machine has neither the program nor its image.
func Start(ctx context.Context, engine Engine) (*Server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	run, err := newRunner(engine, port)
	if err != nil {
		return nil, err
	}
	s := &Server{Engine: engine, Addr: fmt.Sprintf("127.0.0.1:%d", port), run: run}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Remove(context.WithoutCancel(ctx)))
	}
	return s, nil
}

// How describes in a few words where the server comes from.
func (s *Server) How() string { return s.run.how() }

// DSN returns the go-sql-driver data source name of a database on the server; name may be empty.
func (s *Server) DSN(name string) string {
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr, c.DBName = "root", "tcp", s.Addr, name
	return c.FormatDSN()
}

// Kill ends the server at once, as kill -9 does: nothing is flushed, no client is informed. It returns when the
// server is gone. Writes that reached the operating system survive: this is not a loss of power.
func (s *Server) Kill(ctx context.Context) error { return s.run.kill(ctx) }

// Pause freezes the server: connections stay open and new ones are accepted by the kernel, but get no answer.
func (s *Server) Pause(ctx context.Context) error { return s.run.pause(ctx) }

// Resume continues a paused server.
func (s *Server) Resume(ctx context.Context) error { return s.run.resume(ctx) }

// Restart starts the server again after Kill, or kills it first where it still runs, and returns when it
// accepts connections. Its address and data are the same as before.
func (s *Server) Restart(ctx context.Context) error {
	if s.run.alive(ctx) == nil {
		if err := s.Kill(ctx); err != nil {
			return err
		}
	}
	return s.start(ctx)
}

// Remove kills the server, also a paused one, and deletes its data. A second call does nothing.
func (s *Server) Remove(ctx context.Context) error {
	if s.removed {
		return nil
	}
	s.removed = true
	return s.run.remove(ctx)
}

func (s *Server) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	if err := s.run.start(ctx); err != nil {
		return fmt.Errorf("start %s: %w", s.Engine, err)
	}
	for {
		version, err := Version(ctx, s.DSN(""))
		if err == nil {
			s.Version = version
			return nil
		}
		if gone := s.run.alive(ctx); gone != nil {
			return fmt.Errorf("start %s: %w", s.Engine, gone)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("start %s: not ready: %w", s.Engine, errors.Join(err, context.Cause(ctx)))
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Version asks a server for its version, over a separate connection.
func Version(ctx context.Context, dsn string) (version string, err error) {
	config, err := mysql.ParseDSN(dsn)
	if err != nil {
		return "", err
	}
	config.Logger = &mysql.NopLogger{} // while a server starts, every attempt would be logged
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return "", err
	}
	pool := sql.OpenDB(connector)
	defer pool.Close()
	err = pool.QueryRowContext(ctx, "SELECT version()").Scan(&version)
	return version, err
}
