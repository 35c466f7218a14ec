// Package holdertest stops the process of a lock's holder for longer than its lease lasts. The holder is a child: the
// test's own binary, which runs one test of it.
//
// A package that uses it has a test that calls Process where Addr is not empty, and another that calls Paused with the
// first one's name.
package holdertest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"seckill/repository/repotest/orphan"
	"seckill/service/lock"
)

const (
	key      = "lock:holder"
	variable = "SECKILL_HOLDERTEST_ADDR"
)

// Addr returns what Paused was given for the child; "" if this is no child.
func Addr() string { return os.Getenv(variable) }

// Process is the child's part: it acquires, waits until it has been stopped and goes on, and says what it then knows.
func Process(t *testing.T, locker lock.Locker) {
	lease, err := locker.Acquire(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	token, _ := lease.Token()
	fmt.Println("\nholder: token", token)
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	_ = lease.Context().Err()
	fmt.Println("holder: context", context.Cause(lease.Context()))
	fmt.Println("holder: release", lease.Release(t.Context()))
}

// Paused has the child acquire, stops it until other has got the lock, and lets it go on. Then it must know at its first
// look, and its release must leave other's lock alone. Where there are tokens, other's must be higher.
func Paused(t *testing.T, process, addr string, other lock.Locker) {
	c := startChild(t, process, addr)
	var before uint64
	_, _ = fmt.Sscan(c.next("token "), &before)
	c.signal(syscall.SIGSTOP)
	lease, err := other.Acquire(t.Context(), key) // waits for the end of the child's lease
	if err != nil {
		t.Fatal(err)
	}
	if after, ok := lease.Token(); ok && (before == 0 || after <= before) {
		t.Errorf("token %d after %d", after, before)
	}
	c.signal(syscall.SIGCONT)
	_, _ = fmt.Fprintln(c.in, "go on")
	if got := c.next("context "); got != lock.ErrLost.Error() {
		t.Errorf("the first look at the context said %q", got)
	}
	if got := c.next("release "); got != lock.ErrLost.Error() {
		t.Errorf("release said %q", got)
	}
	if _, err := other.Acquire(t.Context(), key, lock.Try()); !errors.Is(err, lock.ErrHeld) {
		t.Errorf("the stale holder released another's lock: %v", err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

type child struct {
	t   *testing.T
	cmd *exec.Cmd
	in  interface{ Write([]byte) (int, error) }
	out *bufio.Scanner
}

func startChild(t *testing.T, process, addr string) *child {
	cmd := exec.Command(os.Args[0], "-test.run=^"+process+"$", "-test.v")
	cmd.Env = append(os.Environ(), variable+"="+addr)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	orphan.Prevent(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return &child{t, cmd, in, bufio.NewScanner(out)}
}

func (c *child) signal(s syscall.Signal) {
	c.t.Helper()
	if err := c.cmd.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// next returns what the child says of the matter.
func (c *child) next(matter string) string {
	c.t.Helper()
	for c.out.Scan() {
		if rest, ok := strings.CutPrefix(c.out.Text(), "holder: "+matter); ok {
			return rest
		}
	}
	c.t.Fatalf("the child did not tell its %s: %v", matter, c.out.Err())
	return ""
}
