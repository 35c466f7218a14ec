package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// command prints and runs a command; its output goes straight through. The command runs in a process group of its own,
// which is killed at the end: a test binary that exceeds its time limit leaves its servers running.
func command(ctx context.Context, name string, args ...string) error {
	say("%s %s", name, strings.Join(args, " "))
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second
	err := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // fails if nothing of the group is left
	}
	if ctx.Err() != nil {
		return errors.New("interrupted")
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", name, args[0], err)
	}
	return nil
}
