package zklock_test

import (
	"testing"
	"time"

	"seckill/repository/lock/zklock"
	"seckill/repository/repotest/holdertest"
)

func TestHolderPaused(t *testing.T) {
	r := newRig(t, nil)
	holdertest.Paused(t, "TestHolderProcess", r.server.Addr, r.other)
}

// TestHolderProcess is the child of TestHolderPaused.
func TestHolderProcess(t *testing.T) {
	if holdertest.Addr() == "" {
		t.Skip("runs as the child of TestHolderPaused")
	}
	holdertest.Process(t, newLocker(t, holdertest.Addr(), func(c *zklock.Config) { c.Timeout = 10 * time.Second }))
}
