// Package clitest runs commands of a program inside tests.
package clitest

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"seckill/cmd/internal/cli"
)

// NoLeaks fails the test if it leaves goroutines behind.
func NoLeaks(t *testing.T) {
	t.Helper()
	// The load generator's cleaner of idle connections ends some seconds after the last of them.
	before := []goleak.Option{goleak.IgnoreCurrent(), goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner")}
	t.Cleanup(func() { goleak.VerifyNone(t, before...) })
}

// Buffer is a buffer that a test may read while a command writes.
type Buffer struct {
	mu      sync.Mutex
	buffer  bytes.Buffer
	written chan struct{} // closed by the next Write, if a test waits
}

// Write appends p.
func (b *Buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.written != nil {
		close(b.written)
		b.written = nil
	}
	return b.buffer.Write(p)
}

// String returns what was written so far.
func (b *Buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// Await waits until text was written.
func (b *Buffer) Await(t *testing.T, text string) {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		b.mu.Lock()
		found, written := strings.Contains(b.buffer.String(), text), b.written
		if written == nil {
			written = make(chan struct{})
			b.written = written
		}
		b.mu.Unlock()
		if found {
			return
		}
		select {
		case <-written:
		case <-timeout:
			t.Fatalf("%q was not written within a minute:\n%s", text, b)
		}
	}
}

// Run runs a command in this process and returns its exit status and output.
func Run(t *testing.T, p cli.Program, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs Buffer
	code = p.Run(t.Context(), args, &out, &errs)
	return code, out.String(), errs.String()
}

// RunJSON runs a command with --json, and decodes its output into document.
func RunJSON(t *testing.T, p cli.Program, document any, args ...string) (code int) {
	t.Helper()
	code, stdout, stderr := Run(t, p, append(args, "--json")...)
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

// EveryCommandHasHelp fails if a command or a flag is not explained.
func EveryCommandHasHelp(t *testing.T, p cli.Program) {
	t.Helper()
	parser, err := p.Parser(io.Discard, os.Stderr)
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

// Eventually polls until the condition holds. Commands give no signal about their progress.
func Eventually(t *testing.T, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the condition did not hold within 30 seconds")
		}
	}
}
