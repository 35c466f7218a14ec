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
	t.Cleanup(func() { _ = shop.Process.Kill() })
	log.Await(t, "the shop is open")
	_ = shop.Process.Signal(os.Interrupt)
	log.Await(t, "shutting down")
	select {
	case err := <-ended:
		t.Fatalf("it ended without the second signal: %v", err)
	default:
	}
	for { // again and again: the program may not have restored the signal's default effect yet
		_ = shop.Process.Signal(os.Interrupt)
		select {
		case err := <-ended:
			exit, ok := errors.AsType[*exec.ExitError](err)
			if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGINT {
				t.Errorf("it ended with %v, not by the signal", err)
			}
			return
		case <-time.After(100 * time.Millisecond):
		}
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
