package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

// noLeaks fails the test if it leaves goroutines behind.
func noLeaks(t *testing.T) {
	t.Helper()
	// The load generator's cleaner of idle connections ends by itself, some seconds after the last of them.
	before := []goleak.Option{goleak.IgnoreCurrent(), goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner")}
	t.Cleanup(func() { goleak.VerifyNone(t, before...) })
}

// text is a buffer that a test may read while a command writes.
type text struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (t *text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buffer.Write(p)
}

func (t *text) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.buffer.String()
}

// seckill runs the program in this process and returns its exit status and what it printed.
func seckill(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs text
	code = run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// seckillJSON runs a command with --json, and reads what it printed into document.
func seckillJSON(t *testing.T, document any, args ...string) (code int) {
	t.Helper()
	code, stdout, stderr := seckill(t, append(args, "--json")...)
	decoder := json.NewDecoder(strings.NewReader(stdout))
	if err := decoder.Decode(document); err != nil {
		t.Fatalf("%v: exit status %d, %v\nstdout: %s\nstderr: %s", args, code, err, stdout, stderr)
	}
	if decoder.More() {
		t.Errorf("%v printed more than one JSON object:\n%s", args, stdout)
	}
	if code != 0 {
		t.Logf("%v: exit status %d\nstderr: %s", args, code, stderr)
	}
	return code
}

func TestEveryCommandHasHelp(t *testing.T) {
	parser, err := newParser(os.Stdout, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range parser.Model.Leaves(false) {
		if command.Help == "" {
			t.Errorf("%s has no help", command.FullPath())
		}
		for _, flag := range command.Flags {
			if flag.Help == "" && flag.PlaceHolder == "" {
				t.Errorf("%s --%s is not explained", command.FullPath(), flag.Name)
			}
		}
	}
}
