package app

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// binary builds the program once for all tests that need instances which can be killed.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "seckill-test-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "seckill")
	if out, err := exec.Command("go", "build", "-o", path, "seckill/cmd/seckill").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := binary(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// instance is a shop in its own process.
type instance struct {
	t    testing.TB
	cmd  *exec.Cmd
	done chan struct{}
	url  string
}

// spawn starts `seckill serve` with these variables, waits until it is ready, and kills it with the test.
func spawn(t testing.TB, variables ...string) *instance {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	listen := freeAddr(t)
	in := &instance{t: t, cmd: exec.Command(path, "serve"), done: make(chan struct{}), url: "http://" + listen}
	in.cmd.Env = append(os.Environ(), "SECKILL_LISTEN="+listen, "SECKILL_JWT_KEY="+testKey, "SECKILL_LOG_LEVEL=warn")
	in.cmd.Env = append(in.cmd.Env, variables...)
	in.cmd.Stderr = t.Output()
	in.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := in.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = in.cmd.Wait()
		close(in.done)
	}()
	t.Cleanup(in.kill)
	in.waitReady()
	return in
}

func (in *instance) waitReady() {
	in.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for time.Now().Before(deadline) {
		if response, err := http.Get(in.url + "/readyz"); err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-in.done:
			in.t.Fatalf("the instance ended at its start: %v", in.cmd.ProcessState)
		case <-time.After(20 * time.Millisecond):
		}
	}
	in.t.Fatal("the instance does not get ready")
}

// kill is SIGKILL, and waits for the end.
func (in *instance) kill() {
	_ = in.cmd.Process.Kill()
	<-in.done
}

// stop is SIGTERM, and waits for a clean end.
func (in *instance) stop() {
	in.t.Helper()
	_ = in.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-in.done:
	case <-time.After(30 * time.Second):
		in.t.Fatal("the instance does not stop")
	}
	if code := in.cmd.ProcessState.ExitCode(); code != 0 {
		in.t.Errorf("the instance ended with status %d", code)
	}
}

func freeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
