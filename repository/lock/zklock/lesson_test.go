package zklock_test

import (
	"testing"
	"time"

	"seckill/repository/lock/zklock"
	"seckill/repository/repotest/zktest"
	"seckill/service/lock"
	"seckill/service/lock/lesson"
)

func TestLesson(t *testing.T) {
	server := zktest.Start(t)
	own := newLocker(t, server.Addr, nil)
	subject := lesson.Subject{
		Name: "zookeeper",
		New: func() (lock.Locker, error) {
			return zklock.New(zklock.Config{Addrs: []string{server.Addr}, Session: testSession, Timeout: 10 * time.Second})
		},
		Break: own.Break,
	}
	findings, err := lesson.Run(t.Context(), subject, testSession/3)
	if err != nil {
		t.Fatal(err)
	}
	if len(findings) != 2 {
		t.Fatalf("%d findings", len(findings))
	}
	for _, f := range findings {
		t.Log(f)
		if !f.StaleWrite || !f.Refused || !f.SecondStands || f.Together > testSession {
			t.Errorf("%+v", f)
		}
	}
	if findings[0].Together == 0 {
		t.Error("the lock was taken away, and the holder knew at once")
	}
	cost, err := lesson.Measure(t.Context(), subject, 50)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("a pair takes %v and %.1f requests", cost.Pair.Round(time.Microsecond), cost.Requests)
	if cost.Requests < 4 || cost.Requests > 5 {
		t.Errorf("%.1f requests for a pair; create, look twice, delete are four", cost.Requests)
	}
}
