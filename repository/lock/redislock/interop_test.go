package redislock_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"seckill/repository/lock/redislock"
	"seckill/service/lock"
)

// redisson is a process with the real Redisson.
type redisson struct {
	t   *testing.T
	in  io.Writer
	out *bufio.Scanner
}

// startRedisson is for the optional part of the suite: it needs Maven and a JDK, and downloads Redisson.
func startRedisson(t *testing.T, addr string) *redisson {
	t.Helper()
	if os.Getenv("SECKILL_TEST_REDISSON") != "1" {
		t.Skip("SECKILL_TEST_REDISSON is not 1: the real Redisson is not downloaded and run")
	}
	path := filepath.Join(t.TempDir(), "classpath")
	mvn := exec.Command("mvn", "-q", "-B", "-f", "redisson/pom.xml", "dependency:build-classpath", "-Dmdep.outputFile="+path)
	if out, err := mvn.CombinedOutput(); err != nil {
		t.Fatalf("mvn: %v\n%s", err, out)
	}
	classes, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	java := exec.Command("java", "-cp", strings.TrimSpace(string(classes)), "redisson/Peer.java", addr)
	java.Stderr = os.Stderr
	in, _ := java.StdinPipe()
	out, _ := java.StdoutPipe()
	if err := java.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = java.Process.Kill()
		_ = java.Wait()
	})
	r := &redisson{t, in, bufio.NewScanner(out)}
	r.want("ready")
	return r
}

func (r *redisson) do(line string) {
	r.t.Helper()
	if _, err := fmt.Fprintln(r.in, line); err != nil {
		r.t.Fatal(err)
	}
}

func (r *redisson) want(answer string) {
	r.t.Helper()
	for r.out.Scan() {
		if got, ok := strings.CutPrefix(r.out.Text(), "peer: "); ok {
			if got != answer {
				r.t.Fatalf("Redisson said %q, want %q", got, answer)
			}
			return
		}
	}
	r.t.Fatalf("Redisson has ended: %v", r.out.Err())
}

// TestRedisson_Real shares a lock with the real Redisson: it excludes us, we exclude it, and each wakes the other. Without
// the news of a release, Redisson would wait for the end of the lease, and we for the poll, both a minute away.
func TestRedisson_Real(t *testing.T) {
	r := newRig(t, redislock.Options{Lease: time.Minute, Poll: time.Minute})
	peer := startRedisson(t, r.server.Addr)
	for _, key := range []string{"lock:voucher:1:user:2", "lock:{voucher:1}:user:2"} {
		lease, err := r.locker.Acquire(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		peer.do("try " + key)
		peer.want("false")
		before, _ := calls(t, r.look)
		peer.do("lock " + key)
		awaitScripts(t, r.look, before+2) // Redisson, too, tries again after it has subscribed
		start := time.Now()
		mustRelease(t, lease)
		peer.want("locked")
		ours := time.Since(start)

		peer.do("lock " + key) // deepens
		peer.want("locked")
		if _, err := r.locker.Acquire(t.Context(), key, lock.Try()); !errors.Is(err, lock.ErrHeld) {
			t.Fatalf("error %v, want ErrHeld", err)
		}
		got := make(chan error, 1)
		before, _ = calls(t, r.look)
		go func() {
			lease, err := r.locker.Acquire(t.Context(), key)
			if err == nil {
				err = lease.Release(t.Context())
			}
			got <- err
		}()
		awaitScripts(t, r.look, before+2)
		peer.do("unlock " + key)
		peer.want("unlocked")
		select {
		case err := <-got:
			t.Fatalf("got in while Redisson held the lock once: %v", err)
		case <-time.After(300 * time.Millisecond): // a wrong grant would come in this time
		}
		start = time.Now()
		peer.do("unlock " + key)
		peer.want("unlocked")
		if err := <-got; err != nil {
			t.Fatal(err)
		}
		theirs := time.Since(start)
		t.Logf("%s: Redisson woke %v after our release, we %v after its", key, ours, theirs)
		if ours > 5*time.Second || theirs > 5*time.Second {
			t.Errorf("woken by the clock, not by the release: %v, %v", ours, theirs)
		}
	}
}
