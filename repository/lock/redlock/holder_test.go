package redlock_test

import (
	"strings"
	"testing"

	"seckill/repository/lock/redlock"
	"seckill/repository/repotest/holdertest"
)

func TestHolder_Paused(t *testing.T) {
	c := newCluster(t)
	var addrs []string
	for _, s := range c.servers {
		addrs = append(addrs, s.Addr)
	}
	holdertest.Paused(t, "TestHolder_Process", strings.Join(addrs, ","), c.locker(t, nil))
}

// TestHolder_Process is the child of TestHolder_Paused.
func TestHolder_Process(t *testing.T) {
	if holdertest.Addr() == "" {
		t.Skip("runs as the child of TestHolder_Paused")
	}
	l, err := redlock.New(redlock.Config{Addrs: strings.Split(holdertest.Addr(), ","), Lease: testLease, Budget: budget,
		Quarantine: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	holdertest.Process(t, l)
}
