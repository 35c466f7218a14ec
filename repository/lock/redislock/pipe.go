package redislock

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// pipe sends commands, and lets those that come at the same time share a pipeline. Nobody waits for a pipeline to fill:
// it takes along what arrived while the pipelines before it were under way, so a lone command goes out at once.
type pipe struct {
	client redis.UniversalClient
	lanes  int // pipelines under way at most
	sent   atomic.Int64

	mu     sync.Mutex
	flying int
	queue  []*request
}

// pipeline is as many commands as are sent together at most: it bounds how long the first waits for the last.
const pipeline = 256

// request is a command on its way. Its cmd must not be read before done is closed.
type request struct {
	cmd  *redis.Cmd
	done chan struct{}
}

func newPipe(client redis.UniversalClient, lanes int) *pipe {
	return &pipe{client: client, lanes: lanes}
}

// send starts to send cmd.
func (p *pipe) send(cmd *redis.Cmd) *request {
	r := &request{cmd: cmd, done: make(chan struct{})}
	p.sent.Add(1)
	p.mu.Lock()
	if p.flying < p.lanes {
		p.flying++
		p.mu.Unlock()
		go p.fly(r)
		return r
	}
	p.queue = append(p.queue, r)
	p.mu.Unlock()
	return r
}

// fly sends first, and then what has gathered meanwhile, until nothing has.
func (p *pipe) fly(first *request) {
	_ = p.client.Process(context.Background(), first.cmd) // cmd keeps the error
	close(first.done)
	for {
		batch := p.take()
		if batch == nil {
			return
		}
		p.exec(batch)
	}
}

// take returns the next batch, or nil after giving up the lane.
func (p *pipe) take() []*request {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := min(len(p.queue), pipeline)
	if n == 0 {
		p.flying--
		return nil
	}
	batch := append([]*request(nil), p.queue[:n]...)
	rest := copy(p.queue, p.queue[n:])
	clear(p.queue[rest:])
	p.queue = p.queue[:rest]
	return batch
}

func (p *pipe) exec(batch []*request) {
	ctx := context.Background() // the client's timeouts bound it
	if len(batch) == 1 {
		_ = p.client.Process(ctx, batch[0].cmd)
		close(batch[0].done)
		return
	}
	pl := p.client.Pipeline()
	for _, r := range batch {
		_ = pl.Process(ctx, r.cmd)
	}
	_, _ = pl.Exec(ctx) // each cmd keeps its own error
	for _, r := range batch {
		close(r.done)
	}
}
