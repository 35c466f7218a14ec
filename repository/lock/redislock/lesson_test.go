package redislock_test

import (
	"context"
	"testing"
	"time"

	"seckill/repository/lock/redislock"
	"seckill/repository/repotest/redistest"
	"seckill/service/lock"
	"seckill/service/lock/lesson"
)

func TestLesson(t *testing.T) {
	client := newClient(t, redistest.Start(t).Addr)
	subject := lesson.Subject{
		Name: "redis",
		New: func() (lock.Locker, error) {
			return redislock.New(client, redislock.Options{Lease: testLease}), nil
		},
		Break: func(ctx context.Context, key string) error { return redislock.Break(ctx, client, key) },
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
		if !f.StaleWrite || !f.Refused || !f.SecondStands || f.Together > testLease {
			t.Errorf("%+v", f)
		}
	}
	if findings[0].Together == 0 {
		t.Error("the lock was taken away, and the holder knew at once")
	}
	cost, err := lesson.Measure(t.Context(), subject, 200)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("a pair takes %v and %.1f requests", cost.Pair.Round(time.Microsecond), cost.Requests)
	if cost.Requests != 2 {
		t.Errorf("%.1f requests for a pair, want 2", cost.Requests)
	}
}
