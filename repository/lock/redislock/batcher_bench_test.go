package redislock

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/repository/repotest/redistest"
)

// BenchmarkTransport compares three ways to bring the scripts of many goroutines to Redis: a round trip for each, the
// client's AutoPipeline, and batcher.
func BenchmarkTransport(b *testing.B) {
	addr := redistest.Start(b).Addr
	client, err := NewClient(Config{Addrs: []string{addr}})
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	auto, err := client.AutoPipeline()
	if err != nil {
		b.Fatal(err)
	}
	defer auto.Close()
	batcher := newBatcher(client)
	if err := updateScript.Load(b.Context(), client).Err(); err != nil {
		b.Fatal(err)
	}
	ctx, keys, args := context.Background(), []string{"key"}, []any{"owner", 0, 0}
	direct := func(c redis.Scripter) func() error {
		return func() error { return updateScript.EvalSha(ctx, c, keys, args...).Err() }
	}
	for _, way := range []struct {
		name string
		send func() error
	}{
		{"round-trips", direct(client)},
		{"AutoPipeline", direct(auto)},
		{"batcher", func() error {
			_, err := batcher.do(ctx, &scriptCall{script: updateScript, keys: keys, args: args}, time.Now().Add(time.Second))
			return err
		}},
	} {
		b.Run(way.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(64)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := way.send(); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
}
