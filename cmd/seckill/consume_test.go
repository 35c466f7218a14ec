package main

import (
	"strings"
	"testing"
)

// Flags that only a shop uses are unknown to consume.
func TestConsume_RefusesFlagsOfServe(t *testing.T) {
	for _, flag := range []string{"--outbox-batch=5", "--no-consume", "--wake-others", "--xxl-job-admins=http://127.0.0.1:1"} {
		name, _, _ := strings.Cut(flag, "=")
		if code, _, stderr := seckill(t, "consume", flag); code != 2 || !strings.Contains(stderr, name) {
			t.Errorf("consume %s: status %d, %s", flag, code, stderr)
		}
	}
	if code, _, stderr := seckill(t, "consume", "--listen=127.0.0.1:0"); code != 1 || !strings.Contains(stderr, "--broker=inproc") {
		t.Errorf("consume without a broker: status %d, %s", code, stderr)
	}
}
