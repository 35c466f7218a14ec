package main

import (
	"bytes"
	"strings"
	"testing"

	"seckill/repository/repotest/zktest"
)

// What is told of every lock: two holders at once, for how long, whether a token helps, and that the sale stayed right.
func TestLocks(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := run(t.Context(), []string{"locks", "--nap=500ms", "--zookeeper-addrs=" + zktest.Start(t).Addr}, &stdout, &stderr)
	if code != 0 {
		t.Fatalf("status %d\n%s%s", code, stdout.String(), stderr.String())
	}
	for _, lock := range []string{"redis", "redlock", "zookeeper"} {
		if !strings.Contains(stdout.String(), lock+", lock taken away under its holder: two holders for ") {
			t.Errorf("%s: nothing is told of two holders:\n%s", lock, stdout.String())
		}
	}
	if n := strings.Count(stdout.String(), "50 of 50 units sold, and the audit finds every invariant to hold"); n != 3 {
		t.Errorf("%d sales of three held:\n%s", n, stdout.String())
	}
	if n := strings.Count(stdout.String(), "would be refused by its token"); n != 4 {
		t.Errorf("%d stale writes refused by tokens, want two of redis and two of zookeeper:\n%s", n, stdout.String())
	}
}
