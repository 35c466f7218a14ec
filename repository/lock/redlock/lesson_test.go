package redlock_test

import (
	"testing"
	"time"

	"seckill/repository/lock/redlock"
	"seckill/service/lock"
	"seckill/service/lock/lesson"
)

// TestLesson: Redlock has no tokens, so nothing but the database can refuse the stale write; and each of its servers has
// to be asked.
func TestLesson(t *testing.T) {
	c := newCluster(t)
	own := c.locker(t, nil)
	config := redlock.Config{Lease: testLease, Budget: budget, Quarantine: -1}
	for _, s := range c.servers {
		config.Addrs = append(config.Addrs, s.Addr)
	}
	subject := lesson.Subject{
		Name:  "redlock",
		New:   func() (lock.Locker, error) { return redlock.New(config) },
		Break: own.Break,
	}
	findings, err := lesson.Run(t.Context(), subject, testLease/3)
	if err != nil {
		t.Fatal(err)
	}
	if len(findings) != 2 {
		t.Fatalf("%d findings", len(findings))
	}
	for _, f := range findings {
		t.Log(f)
		if !f.StaleWrite || f.HasToken || f.Refused || !f.SecondStands || f.Together > testLease {
			t.Errorf("%+v", f)
		}
	}
	if findings[0].Together == 0 {
		t.Error("the lock was taken away, and the holder knew at once")
	}
	cost, err := lesson.Measure(t.Context(), subject, 100)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("a pair takes %v and %.1f requests", cost.Pair.Round(time.Microsecond), cost.Requests)
	if cost.Requests != 10 {
		t.Errorf("%.1f requests for a pair: five servers asked twice are ten", cost.Requests)
	}
}
