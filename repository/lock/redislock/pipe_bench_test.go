package redislock

import (
	"context"
	"strconv"
	"testing"
	"time"

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
	hold := newScripts().hold
	newRequest := func() *request {
		return &request{script: hold, key: "key", args: [3]any{"owner", "0", "0"}}
	}
	if err := client.ScriptLoad(b.Context(), holdSource).Err(); err != nil {
		b.Fatal(err)
	}
	run := func(name string, send func(*request) error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(64)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := send(newRequest()); err != nil {
						b.Error(err)
					}
				}
			})
		})
	}
	ctx := context.Background()
	run("plain", func(r *request) error { return client.Process(ctx, command([]*request{r})) })
	run("AutoPipeline", func(r *request) error { return auto.Process(ctx, command([]*request{r})) })
	for name, p := range pipes {
		run(name, func(r *request) error { _, err := p.do(ctx, r, time.Now().Add(time.Second)); return err })
	}
}
