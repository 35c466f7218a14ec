package redislock

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/repository/repotest/redistest"
)

// BenchmarkTransport compares the ways to bring many goroutines' scripts to Redis: a connection's round trip each, the
// client's own AutoPipeline, and pipe.
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
	pipes := map[string]*pipe{}
	for _, lanes := range []int{1, 2, 4} {
		pipes["pipe of lanes="+strconv.Itoa(lanes)] = newPipe(client, lanes)
	}
	s := newScript(holdSource)
	if err := client.ScriptLoad(b.Context(), holdSource).Err(); err != nil {
		b.Fatal(err)
	}
	run := func(name string, process func(*redis.Cmd)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(64)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					cmd := s.command(false, []any{"key"}, []any{"owner", "0", "0"})
					process(cmd)
					if err := cmd.Err(); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
	ctx := context.Background()
	run("plain", func(cmd *redis.Cmd) { _ = client.Process(ctx, cmd) })
	run("AutoPipeline", func(cmd *redis.Cmd) { _ = auto.Process(ctx, cmd) })
	for name, p := range pipes {
		run(name, func(cmd *redis.Cmd) { _, _ = p.do(ctx, cmd, time.Now().Add(time.Second)) })
	}
}
