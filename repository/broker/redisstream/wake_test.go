package redisstream_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"seckill/repository/broker/redisstream"
	"seckill/repository/repotest/redistest"
	"seckill/service/outbox/brokertest"
)

func TestWaker_WakesOtherInstances(t *testing.T) {
	server := redistest.Start(t)
	channel := brokertest.Topic()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	instance := func() (*redisstream.Waker, chan struct{}) {
		woken := make(chan struct{}, 1)
		w := redisstream.NewWaker(connect(t, server.Addr), channel, func() {
			select {
			case woken <- struct{}{}:
			default:
			}
		})
		running.Go(func() { w.Run(ctx) })
		return w, woken
	}
	one, oneWoken := instance()
	_, twoWoken := instance()
	wake := func(when string) {
		t.Helper()
		for start := time.Now(); time.Since(start) < 20*time.Second; {
			one.Wake()
			select {
			case <-twoWoken:
				return
			case <-time.After(20 * time.Millisecond): // it may not have subscribed yet
			}
		}
		t.Fatalf("%s: the other instance was not woken", when)
	}
	wake("at first")
	select {
	case <-oneWoken:
	default:
		t.Error("the instance itself was not woken at once")
	}
	server.Kill()
	one.Wake() // must not block
	server.Restart()
	wake("after a restart")
}
