package redislock

import (
	"context"
	_ "embed"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/service/lock"
	"seckill/service/lock/lockcore"
)

var (
	//go:embed acquire.lua
	acquireSource string
	//go:embed update.lua
	updateSource string
	//go:embed release.lua
	releaseSource string

	acquireScript = redis.NewScript(acquireSource)
	updateScript  = redis.NewScript(updateSource)
	releaseScript = redis.NewScript(releaseSource)
)

// scriptCall is one run of a script on one lock. The results must not be read before done is closed. Every script is
// safe to repeat: it sets what should be, it does not count.
type scriptCall struct {
	script *redis.Script
	keys   []string
	args   []any
	load   bool // send the script itself, because the server does not know its digest

	value int64
	err   error
	done  chan struct{}
}

// batcher sends calls to Redis. Calls that arrive while earlier ones are on their way share the next pipeline. A lone
// call is sent at once.
//
// go-redis's AutoPipeline needs the same CPU time, see the README of service/lock. But it is experimental, and holds calls
// back for up to some milliseconds to fill a batch.
type batcher struct {
	client redis.UniversalClient
	sent   atomic.Int64 // number of calls

	mu    sync.Mutex
	queue []*scriptCall
	idle  int // workers that are not running
}

// maxWorkers is how many pipelines are on their way at a time.
const maxWorkers = 2

func newBatcher(client redis.UniversalClient) *batcher {
	return &batcher{client: client, idle: maxWorkers}
}

// do sends call and waits for its result until the deadline or the end of ctx. If it does not wait for the result, it
// returns call.done as running; call must not be read then.
func (b *batcher) do(ctx context.Context, call *scriptCall, deadline time.Time) (running <-chan struct{}, err error) {
	call.done = make(chan struct{})
	b.sent.Add(1)
	b.enqueue(call)
	timer := time.NewTimer(time.Until(deadline))
	defer timer.Stop()
	select {
	case <-call.done:
		return nil, call.err
	case <-ctx.Done():
		return call.done, lockcore.Ended(ctx)
	case <-timer.C:
		return call.done, fmt.Errorf("%w: no answer in time", lock.ErrUnavailable)
	}
}

func (b *batcher) enqueue(call *scriptCall) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue = append(b.queue, call)
	if b.idle > 0 {
		b.idle--
		go b.work()
	}
}

// work sends batches until the queue is empty. Before each batch, the goroutines that are about to enqueue get to run.
func (b *batcher) work() {
	for {
		runtime.Gosched()
		b.mu.Lock()
		batch := b.queue
		b.queue = nil
		if len(batch) == 0 {
			b.idle++
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
		b.send(batch)
	}
}

// send sends a batch in one pipeline, or a lone call without one, which takes a fifth less time. The client's timeouts bound
// it.
func (b *batcher) send(batch []*scriptCall) {
	ctx := context.Background()
	if len(batch) == 1 {
		batch[0].finish(batch[0].addTo(ctx, b.client))
		return
	}
	pipeline := b.client.Pipeline()
	replies := make([]*redis.Cmd, len(batch))
	for i, call := range batch {
		replies[i] = call.addTo(ctx, pipeline)
	}
	_, _ = pipeline.Exec(ctx) // the error is in each reply
	for i, call := range batch {
		call.finish(replies[i])
	}
}

func (c *scriptCall) addTo(ctx context.Context, to redis.Scripter) *redis.Cmd {
	if c.load {
		return c.script.Eval(ctx, to, c.keys, c.args...)
	}
	return c.script.EvalSha(ctx, to, c.keys, c.args...)
}

func (c *scriptCall) finish(reply *redis.Cmd) {
	c.value, c.err = reply.Int64()
	close(c.done)
}
