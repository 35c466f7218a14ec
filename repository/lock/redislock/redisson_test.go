package redislock_test

import (
	"regexp"
	"testing"
	"time"

	"seckill/repository/lock/redislock"
	"seckill/repository/repotest/wait"
	"seckill/service/lock"
)

// These tests speak as Redisson does, see RedissonLock.tryLockInnerAsync and unlockInnerAsync: a hash at the lock's name
// with the field "client-uuid:thread-id" and the depth as its value, and the message 0 on the lock's channel.

const (
	redissonOwner   = "b983c153-7421-469a-addb-44fb92259a1b:1"
	redissonChannel = "redisson_lock__channel:{" + key + "}"
)

func TestRedisson_IsWaitedFor(t *testing.T) {
	r := newRig(t, redislock.Options{Lease: time.Minute, Poll: time.Minute})
	if err := r.look.HIncrBy(t.Context(), key, redissonOwner, 1).Err(); err != nil {
		t.Fatal(err)
	}
	if err := r.look.PExpire(t.Context(), key, time.Minute).Err(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.locker.Acquire(t.Context(), key, lock.Try()); err != lock.ErrHeld {
		t.Fatalf("error %v, want ErrHeld", err)
	}
	got := make(chan error, 1)
	before, _ := calls(t, r.look)
	go func() {
		lease, err := r.locker.Acquire(t.Context(), key)
		if err == nil {
			err = lease.Release(t.Context())
		}
		got <- err
	}()
	wait.Until(t, "the waiter has subscribed", func() bool { return r.hasWaiter(t) })
	awaitScripts(t, r.look, before+2)
	start := time.Now()
	r.look.Del(t.Context(), key)
	if n := r.look.Publish(t.Context(), redissonChannel, 0).Val(); n != 1 {
		t.Fatalf("%d listeners", n)
	}
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("woken after %v", d)
	}
}

func TestRedisson_UnderstandsOurLayout(t *testing.T) {
	r := newRig(t, redislock.Options{Lease: time.Minute})
	sub := r.look.Subscribe(t.Context(), redissonChannel)
	defer sub.Close()
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	outer := mustAcquire(t, r.locker)
	inner, err := r.locker.Acquire(outer.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	fields := r.look.HGetAll(t.Context(), key).Val()
	owner := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}:\d+$`)
	for field, depth := range fields {
		if !owner.MatchString(field) || depth != "2" || len(fields) != 1 {
			t.Errorf("fields %v", fields)
		}
	}
	if ttl := r.look.PTTL(t.Context(), key).Val(); ttl < 50*time.Second || ttl > time.Minute {
		t.Errorf("expiry %v, want about a minute", ttl)
	}
	mustRelease(t, inner)
	mustRelease(t, outer)
	message, err := sub.ReceiveMessage(t.Context())
	if err != nil || message.Payload != "0" {
		t.Errorf("message %v, %v", message, err)
	}
}
