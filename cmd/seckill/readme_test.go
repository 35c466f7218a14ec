package main

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"seckill/cmd/internal/cli/clitest"
	"strings"
	"syscall"
	"testing"
)

// The tour in handler/README.md works when it is pasted.
func TestReadme_Tour(t *testing.T) {
	text, err := os.ReadFile("../../handler/README.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```sh\n(shop=.*?)```").FindSubmatch(text)
	if block == nil {
		t.Fatal("handler/README.md has no tour that begins with shop=")
	}
	for _, needed := range []string{"bash", "curl", "sed"} {
		if _, err := exec.LookPath(needed); err != nil {
			t.Fatalf("the tour needs %s: %v", needed, err)
		}
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	data, listen := filepath.Join(t.TempDir(), "data"), freeAddr(t)
	serve(t, program, listen, data)

	tour := strings.NewReplacer(
		"http://127.0.0.1:8080", "http://"+listen,
		"go run ./cmd/seckill token", program+" token --data="+data,
	).Replace(string(block[1]))
	command := exec.Command("bash", "-euo", "pipefail", "-c", tour)
	command.Env = append(os.Environ(), asProgram+"=1")
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	rest := string(out)
	for _, want := range []string{
		`"stock":100`, "HTTP/1.1 201", "HTTP/1.1 200", "HTTP/1.1 409", "already-ordered", // the order, three times
		`"status":"paid"`, `"status":"paid"`, `"stock":149`, `"ends_at"`, `"ok":true`,
	} {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("%s does not come in its place:\n%s", want, out)
		}
		rest = after
	}
}

// serve runs an embedded shop in a separate process until the test ends.
func serve(t *testing.T, program, listen, data string) {
	t.Helper()
	shop := exec.Command(program, "serve", "--listen="+listen, "--data="+data)
	shop.Env = append(os.Environ(), asProgram+"=1")
	var log clitest.Buffer
	shop.Stderr = &log
	if err := shop.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = shop.Process.Signal(syscall.SIGTERM)
		if err := shop.Wait(); err != nil {
			t.Errorf("the shop ended with %v", err)
		}
	})
	log.Await(t, "the shop is open")
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
