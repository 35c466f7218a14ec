package brokerserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// process is a Java process that tests kill, start again and freeze.
type process struct {
	args []string // of java
	dir  string
	cmd  *exec.Cmd
	gone chan struct{} // closed when cmd has ended
}

func (p *process) start(t testing.TB) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(p.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	p.cmd = exec.Command("java", p.args...)
	p.cmd.Dir, p.cmd.Stdout, p.cmd.Stderr = p.dir, log, log
	p.cmd.Env = append(os.Environ(), "HOME="+p.dir) // RocketMQ writes below it
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.gone = make(chan struct{})
	go func(cmd *exec.Cmd, gone chan struct{}) {
		_ = cmd.Wait() // how it ended is in its log
		close(gone)
	}(p.cmd, p.gone)
}

// kill kills the process, which may be frozen, and waits until it has ended.
func (p *process) kill() {
	if p.gone == nil {
		return
	}
	_ = p.cmd.Process.Kill() // it may be gone
	<-p.gone
}

func (p *process) signal(t testing.TB, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// running returns an error if the process has ended.
func (p *process) running() error {
	select {
	case <-p.gone:
		log, _ := os.ReadFile(filepath.Join(p.dir, "log"))
		return fmt.Errorf("%s has ended: %s\n%s", p.args[len(p.args)-1], p.cmd.ProcessState, log[max(0, len(log)-2000):])
	default:
		return nil
	}
}

// jars returns a directory with the jars of Maven artifacts ("group:artifact:version") and their dependencies. It downloads
// them once into the user's cache.
func jars(name string, artifacts ...string) (string, error) {
	for _, program := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(program); err != nil {
			return "", fmt.Errorf("%s is not on PATH", program)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "seckill-test", name)
	if _, err := os.Stat(filepath.Join(dir, "complete")); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	unlock, err := lockFile(filepath.Join(dir, "lock")) // test binaries of several packages run at once
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(filepath.Join(dir, "complete")); err == nil {
		return dir, nil
	}
	if err := os.WriteFile(filepath.Join(dir, "pom.xml"), []byte(pom(artifacts)), 0o644); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "mvn", "-q", "-B", "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+dir)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("mvn: %w: %s", err, out)
	}
	return dir, os.WriteFile(filepath.Join(dir, "complete"), nil, 0o644)
}

// lockFile waits until this process holds the lock.
func lockFile(name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil // closing gives the lock back
}

func pom(artifacts []string) string {
	var dependencies strings.Builder
	for _, a := range artifacts {
		part := strings.Split(a, ":")
		fmt.Fprintf(&dependencies, "<dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version></dependency>", part[0], part[1], part[2])
	}
	return `<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>` +
		`<groupId>seckill</groupId><artifactId>brokers</artifactId><version>1</version><dependencies>` +
		dependencies.String() + `</dependencies></project>`
}

// dataDir creates a directory on a real disk that is removed when the test ends.
func dataDir(t testing.TB, base string) string {
	t.Helper()
	dir, err := os.MkdirTemp(base, "seckill-broker-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// ErrUnavailable means that this machine cannot run a broker.
var ErrUnavailable = errors.New("broker not available")
