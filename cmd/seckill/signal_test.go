package main

import (
	"errors"
	"os"
	"os/exec"
	"seckill/cmd/internal/cli/clitest"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The first Ctrl-C shuts a shop down gracefully, however long that takes. The second one kills it.
func TestServe_SecondInterruptKills(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var log clitest.Buffer
	shop := exec.Command(program, "serve", "--listen=127.0.0.1:0", "--data="+t.TempDir(), "--drain-delay=5m", "--shutdown-timeout=10m")
	shop.Env = append(os.Environ(), asProgram+"=1")
	shop.Stderr = &log
	if err := shop.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- shop.Wait() }()
	interrupt := func(until func() bool, what string) {
		t.Helper()
		_ = shop.Process.Signal(os.Interrupt)
		for start := time.Now(); !until(); time.Sleep(10 * time.Millisecond) {
			if time.Since(start) > time.Minute {
				_ = shop.Process.Kill()
				t.Fatalf("%s within a minute:\n%s", what, log.String())
			}
		}
	}
	for start := time.Now(); !strings.Contains(log.String(), "the shop is open"); time.Sleep(10 * time.Millisecond) {
		if time.Since(start) > time.Minute {
			_ = shop.Process.Kill()
			t.Fatalf("not open within a minute:\n%s", log.String())
		}
	}
	interrupt(func() bool { return strings.Contains(log.String(), "shutting down") }, "it does not shut down")
	select {
	case err := <-ended:
		t.Fatalf("it ended without the second signal: %v", err)
	default:
	}
	interrupt(func() bool {
		_ = shop.Process.Signal(os.Interrupt) // again, in case the first was still handled
		return len(ended) > 0
	}, "it does not end")
	var exit *exec.ExitError
	if err := <-ended; !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGINT {
		t.Errorf("it ended with %v, not by the signal", err)
	}
}

// Commands that only read an embedded database do not create one.
func TestCommands_MissingDataDirectory(t *testing.T) {
	missing := t.TempDir() + "/mistyped"
	for _, command := range []string{"audit", "outbox list", "outbox show 7", "outbox retry --all", "migrate status", "token --user 1"} {
		code, stdout, stderr := seckill(t, append(strings.Fields(command), "--data="+missing)...)
		if code != 1 || !strings.Contains(stderr, missing) {
			t.Errorf("%s: status %d, %s%s", command, code, stdout, stderr)
		}
		if _, err := os.Stat(missing); err == nil {
			t.Fatalf("%s made the directory", command)
		}
	}
	if code, _, stderr := seckill(t, "migrate", "up", "--data="+missing); code != 0 {
		t.Errorf("migrate up: status %d, %s", code, stderr)
	}
	if code, _, stderr := seckill(t, "migrate", "status", "--data="+missing); code != 0 {
		t.Errorf("migrate status: status %d, %s", code, stderr)
	}
}
