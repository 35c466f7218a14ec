package k6_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// program builds the shop once for all tests. It is a program to them, as it is to k6.
var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "seckill-k6-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "seckill")
	if out, err := exec.Command("go", "build", "-o", path, "seckill/cmd/seckill").CombinedOutput(); err != nil {
		return "", errors.Join(fmt.Errorf("%w\n%s", err, out), os.RemoveAll(dir))
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := program(); err == nil {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// openShop runs an embedded shop until the test ends, and returns its address and data directory.
func openShop(t *testing.T) (url, data string) {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	data = t.TempDir()
	cmd := exec.Command(path, "serve", "--listen=127.0.0.1:0", "--data="+data, "--log-level=warn")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	opened, ended := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			if rest, found := strings.CutPrefix(lines.Text(), "embedded shop at "); found {
				opened <- rest[:strings.Index(rest, ",")]
			}
			t.Log(lines.Text())
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-ended
		if err := cmd.Wait(); err != nil {
			t.Errorf("the shop: %v", err)
		}
	})
	select {
	case url = <-opened:
	case <-ended:
		t.Fatal("the shop did not open")
	case <-time.After(2 * time.Minute):
		t.Fatal("the shop did not open in time")
	}
	return url, data
}

// result is what of a script's report the tests read.
type result struct {
	OK       bool
	Orders   int
	Requests int
	Defects  map[string]int
	Answers  []struct {
		Op, Outcome string
		Count       int
	}
	Settings struct {
		Report string
	}
}

func (r *result) count(op, outcome string) (n int) {
	for _, a := range r.Answers {
		if a.Op == op && a.Outcome == outcome {
			n += a.Count
		}
	}
	return n
}

// thresholdsFailed is k6's exit status for it.
const thresholdsFailed = 99

// play runs a script and returns its report and exit status. The limits that a busy machine breaks are off.
func play(t *testing.T, script string, variables ...string) (r result, status int) {
	t.Helper()
	report := filepath.Join(t.TempDir(), script)
	args := []string{"run", "--quiet", "--no-color"}
	for _, v := range append([]string{"REPORT=" + report, "VUS=50", "TIMEOUT=60", "DROPPED=1000000", "ACCEPTED=600000", "REFUSED=600000"}, variables...) {
		args = append(args, "--env="+v)
	}
	cmd := exec.Command(k6(t), append(args, script+".js")...)
	cmd.Env = append(os.Environ(), "K6_NO_USAGE_REPORT=true")
	out, err := cmd.CombinedOutput()
	t.Logf("%s\n%s", strings.Join(args, " "), out)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		status = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(report + ".json")
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		t.Fatalf("the report, after exit status %d: %v", status, err)
	}
	if !bytes.Contains(out, []byte(script+": ")) {
		t.Error("the terminal shows no summary")
	}
	checkPage(t, report+".html", r.OK)
	return r, status
}

// checkPage holds the page to what it says it is: complete in itself, and right about the verdict.
func checkPage(t *testing.T, path string, ok bool) {
	t.Helper()
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, elsewhere := range []string{"<script", "<link", " src=", " href=", "url(", "@import"} {
		if bytes.Contains(page, []byte(elsewhere)) {
			t.Errorf("the page contains %q", elsewhere)
		}
	}
	if says := bytes.Contains(page, []byte(": nothing wrong</title>")); says != ok {
		t.Errorf("the page says that all is well: %v; the result: %v", says, ok)
	}
}

// k6 finds the program: on PATH, or where go install puts it.
func k6(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("k6")
	if err == nil {
		return path
	}
	for _, dir := range []string{goEnv(t, "GOBIN"), filepath.Join(goEnv(t, "GOPATH"), "bin")} {
		if path, err := exec.LookPath(filepath.Join(dir, "k6")); err == nil && dir != "" {
			return path
		}
	}
	missing(t, "k6 is not here; `go run ./cmd/test` brings it")
	return ""
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// missing skips the test, or fails it where everything has to run.
func missing(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("SECKILL_TEST_REQUIRED") == "1" {
		t.Fatalf("%s, and SECKILL_TEST_REQUIRED=1 demands it", why)
	}
	t.Skip(why)
}
