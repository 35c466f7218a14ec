package zklock_test

import (
	"testing"
	"time"

	"seckill/repository/lock/zklock"
	"seckill/repository/repotest/holdertest"
)

func TestHolder_Paused(t *testing.T) {
	r := newRig(t, nil)
	holdertest.Paused(t, "TestHolder_Process", r.server.Addr, r.other)
}

// TestHolder_Process is the child of TestHolder_Paused.
func TestHolder_Process(t *testing.T) {
	if holdertest.Addr() == "" {
		t.Skip("runs as the child of TestHolder_Paused")
	}
	holdertest.Process(t, newLocker(t, holdertest.Addr(), func(c *zklock.Config) { c.Timeout = 10 * time.Second }))
}
