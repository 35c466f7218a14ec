package redislock_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"seckill/repository/lock/redislock"
	"seckill/repository/repotest/redistest"
	"seckill/service/lock"
)

// BenchmarkPair acquires and releases an uncontended lock, from one goroutine and from many.
func BenchmarkPair(b *testing.B) {
	l := newLocker(b, redistest.Start(b).Addr, redislock.Options{})
	b.Run("alone", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			pair(b, l, "alone")
		}
	})
	for _, parallel := range []int{32, 256} {
		b.Run(fmt.Sprintf("goroutines=%d", parallel*runtime.GOMAXPROCS(0)), func(b *testing.B) {
			var n atomic.Int64
			b.ReportAllocs()
			b.SetParallelism(parallel)
			b.RunParallel(func(pb *testing.PB) {
				key := fmt.Sprintf("lock:voucher:1:user:%d", n.Add(1))
				for pb.Next() {
					pair(b, l, key)
				}
			})
		})
	}
}

func pair(b *testing.B, l lock.Locker, key string) {
	lease, err := l.Acquire(b.Context(), key, lock.Try())
	if err != nil {
		b.Error(err)
		return
	}
	if err := lease.Release(b.Context()); err != nil {
		b.Error(err)
	}
}

// BenchmarkHandoff measures from the call of Release to the return of a waiter's Acquire, in another process.
func BenchmarkHandoff(b *testing.B) {
	server := redistest.Start(b)
	look := server.Client()
	lockers := []lock.Locker{newLocker(b, server.Addr, redislock.Options{}), newLocker(b, server.Addr, redislock.Options{})}
	var took []time.Duration
	lease, err := lockers[0].Acquire(b.Context(), "handoff")
	if err != nil {
		b.Fatal(err)
	}
	for i := 1; b.Loop(); i++ {
		next := make(chan lock.Lease)
		before, _ := calls(b, look)
		go func() {
			lease, err := lockers[i%2].Acquire(context.Background(), "handoff")
			if err != nil {
				b.Error(err)
			}
			next <- lease
		}()
		awaitScripts(b, look, before+2)
		start := time.Now()
		if err := lease.Release(b.Context()); err != nil {
			b.Fatal(err)
		}
		lease = <-next
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*9/10].Microseconds()), "p90-µs")
	if err := lease.Release(b.Context()); err != nil {
		b.Fatal(err)
	}
}
