package locks

import (
	"strings"
	"testing"
	"time"

	"seckill/cmd/internal/cli"
	"seckill/cmd/internal/cli/clitest"
	"seckill/repository/lock/redlock"
	"seckill/repository/repotest/redistest"
	"seckill/repository/repotest/zktest"
)

// The output shows for every lock: two holders at the same time, for how long, whether a token helps, and that the sale was
// correct.
func TestCommand_EveryLock(t *testing.T) {
	clitest.NoLeaks(t)
	program := cli.Program{Name: "lab locks", Commands: new(Command)}
	code, stdout, stderr := clitest.Run(t, program, "--pause=500ms", "--zookeeper-addrs="+zktest.Start(t).Addr)
	if code != 0 {
		t.Fatalf("status %d\n%s%s", code, stdout, stderr)
	}
	for _, lock := range []string{"redis", "redlock", "zookeeper"} {
		if !strings.Contains(stdout, lock+", lock deleted under its holder: two holders for ") {
			t.Errorf("%s: no two holders:\n%s", lock, stdout)
		}
	}
	if n := strings.Count(stdout, "50 of 50 units sold, and the audit finds that every invariant holds"); n != 3 {
		t.Errorf("%d sales of three were correct:\n%s", n, stdout)
	}
	if n := strings.Count(stdout, "would be refused by its token"); n != 4 {
		t.Errorf("%d stale writes refused by tokens, want two of redis and two of zookeeper:\n%s", n, stdout)
	}
}

// lease is that of the locks in these tests, and the session of ZooKeeper.
const lease = 3 * time.Second

func TestCases_Redis(t *testing.T) {
	checkLock(t, redisSubject("test", []string{redistest.Start(t).Addr}, lease), true, 2, 2)
}

// Redlock has no tokens, so only the database can refuse the stale write. Each of its five servers is asked twice.
func TestCases_Redlock(t *testing.T) {
	config := redlock.Config{Lease: lease, Quarantine: -1}
	for range 5 {
		config.Addrs = append(config.Addrs, redistest.Start(t).Addr)
	}
	checkLock(t, redlockSubject("test", config), false, 10, 10)
}

// ZooKeeper's lock creates a node, looks twice and deletes it.
func TestCases_ZooKeeper(t *testing.T) {
	checkLock(t, zookeeperSubject([]string{zktest.Start(t).Addr}, lease), true, 4, 5)
}

// checkLock checks what a lock does in both cases, and how many requests it sends.
func checkLock(t *testing.T, s subject, refused bool, least, most float64) {
	t.Helper()
	findings, err := s.runCases(t.Context(), lease/3)
	if err != nil {
		t.Fatal(err)
	}
	if len(findings) != 2 {
		t.Fatalf("%d findings", len(findings))
	}
	for _, f := range findings {
		if !f.staleWrite || f.hasToken != refused || f.refused != refused || !f.secondHeld || f.together > lease {
			t.Errorf("%+v", f)
		}
	}
	if findings[0].together == 0 {
		t.Error("the lock was deleted, and its holder knew at once")
	}
	cost, err := s.measure(t.Context(), 50)
	if err != nil {
		t.Fatal(err)
	}
	if cost.requests < least || cost.requests > most {
		t.Errorf("%.1f requests for a pair, want %v to %v", cost.requests, least, most)
	}
}
