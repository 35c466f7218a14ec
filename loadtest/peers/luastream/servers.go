package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"
)

// servers are the servers of a run; close stops them in reverse order.
type servers struct{ closers []func() error }

func (s *servers) onClose(f func() error) { s.closers = append(s.closers, f) }

func (s *servers) close() error {
	var errs []error
	for _, closer := range slices.Backward(s.closers) {
		errs = append(errs, closer())
	}
	return errors.Join(errs...)
}

// startLimit and stopLimit are how long a server may take to start and to stop.
const (
	startLimit = 30 * time.Second
	stopLimit  = 30 * time.Second
)

// process starts a program; close stops it with SIGTERM. Its output becomes part of an error.
func (s *servers) process(program string, args ...string) (ended <-chan struct{}, err error) {
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = stopLimit
	var output strings.Builder
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Start(); err != nil {
		stop()
		return nil, err
	}
	var failed error
	done := make(chan struct{})
	go func() { failed = cmd.Wait(); close(done) }()
	s.onClose(func() error {
		stop()
		<-done
		if failed == nil || errors.Is(failed, context.Canceled) { // stopped with status 0
			return nil
		}
		return fmt.Errorf("%s: %w: %s", program, failed, output.String())
	})
	return done, nil
}

// start starts a shop and waits until it is ready.
func (s *servers) start(ctx context.Context, readyURL, program string, args ...string) error {
	ended, err := s.process(program, args...)
	if err != nil {
		return err
	}
	return await(ctx, program, ended, func() bool {
		resp, err := http.Get(readyURL)
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

// startRedis starts an empty Redis.
func (s *servers) startRedis(ctx context.Context, program, fsync string) (addr string, err error) {
	dir, err := os.MkdirTemp("", "luastream")
	if err != nil {
		return "", err
	}
	s.onClose(func() error { return os.RemoveAll(dir) })
	if addr, err = freeAddr(); err != nil {
		return "", err
	}
	_, port, _ := net.SplitHostPort(addr)
	args := []string{"--bind", "127.0.0.1", "--port", port, "--dir", dir, "--save", ""}
	if fsync != "off" {
		args = append(args, "--appendonly", "yes", "--appendfsync", fsync)
	}
	ended, err := s.process(program, args...)
	if err != nil {
		return "", err
	}
	return addr, await(ctx, program, ended, func() bool {
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

func await(ctx context.Context, what string, ended <-chan struct{}, ready func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for !ready() {
		select {
		case <-ended:
			return fmt.Errorf("%s ended at once", what)
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w", what, ctx.Err())
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}

// createDatabase creates a database and returns its DSN; close drops it. Its name begins with that of the DSN's database.
func (s *servers) createDatabase(ctx context.Context, dsn string) (string, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return "", fmt.Errorf("--mysql-dsn: %w", err)
	}
	admin, err := sql.Open("mysql", dsn)
	if err != nil {
		return "", err
	}
	s.onClose(admin.Close)
	cfg.DBName = cmp.Or(cfg.DBName, "luastream")
	cfg.DBName = cfg.DBName[:min(len(cfg.DBName), 55)] + "_" + strings.ToLower(rand.Text()[:8])
	if _, err := admin.ExecContext(ctx, "CREATE DATABASE "+cfg.DBName+" CHARACTER SET utf8mb4"); err != nil {
		return "", err
	}
	s.onClose(func() error {
		_, err := admin.ExecContext(context.WithoutCancel(ctx), "DROP DATABASE "+cfg.DBName)
		return err
	})
	return cfg.FormatDSN(), nil
}

// freeAddr returns a loopback address that was free a moment ago.
func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// describe names the database server and the settings that decide whether a commit is durable.
func describe(ctx context.Context, dsn string) (string, error) {
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		return "", fmt.Errorf("--mysql-dsn: %w", err)
	}
	defer func() { _ = db.Close() }()
	var version, flush, binlog, sync string
	if err := db.QueryRowContext(ctx, "SELECT VERSION(), @@innodb_flush_log_at_trx_commit, @@log_bin, @@sync_binlog").
		Scan(&version, &flush, &binlog, &sync); err != nil {
		return "", err
	}
	return fmt.Sprintf("database %s, innodb_flush_log_at_trx_commit=%s, log_bin=%s, sync_binlog=%s", version, flush, binlog, sync), nil
}
