package redislock

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/service/lock"
	"seckill/service/lock/keeper"
)

// pipe sends commands, and lets those that come at the same time share a pipeline. Nobody waits for a pipeline to fill:
// it takes along what arrived while the pipelines before it were under way. A lone command goes out at once, on its
// caller's goroutine.
type pipe struct {
	client redis.UniversalClient
	sent   atomic.Int64

	mu     sync.Mutex
	closed bool
	idle   []*lane
	queue  []*request
}

// pipeline is as many commands as are sent together at most: it bounds how long the first waits for the last.
const pipeline = 256

// request is a command that shares a pipeline. Its cmd must not be read before done is closed.
type request struct {
	cmd  *redis.Cmd
	done chan struct{}
}

// newPipe leaves the client at least half of its connections, where lanes keep theirs.
func newPipe(client redis.UniversalClient, lanes int) *pipe {
	if single, ok := client.(*redis.Client); ok {
		lanes = min(lanes, max(1, single.Options().PoolSize/2))
	}
	p := &pipe{client: client}
	for range lanes {
		p.idle = append(p.idle, &lane{client: client})
	}
	return p
}

// do sends cmd and waits for its reply, until the deadline at the latest. If it returns before the reply, cmd must not be
// read, and pending is closed when the command is over. The end of ctx is noticed at once by a command that shares a
// pipeline, and otherwise with the reply.
func (p *pipe) do(ctx context.Context, cmd *redis.Cmd, deadline time.Time) (pending <-chan struct{}, err error) {
	p.sent.Add(1)
	p.mu.Lock()
	if last := len(p.idle) - 1; last >= 0 {
		l := p.idle[last]
		p.idle = p.idle[:last]
		p.mu.Unlock()
		err := l.process(until{context.Background(), deadline}, cmd)
		p.land(l)
		return nil, err
	}
	r := &request{cmd: cmd, done: make(chan struct{})}
	p.queue = append(p.queue, r)
	p.mu.Unlock()
	timer := startTimer(time.Until(deadline))
	defer stopTimer(timer)
	select {
	case <-r.done:
		return nil, cmd.Err()
	case <-ctx.Done():
		return r.done, keeper.Ended(ctx)
	case <-timer.C:
		return r.done, fmt.Errorf("%w: no answer in time", lock.ErrUnavailable)
	}
}

// until is a context with a deadline, which is all that the client looks at while it waits for a reply.
type until struct {
	context.Context
	deadline time.Time
}

// Deadline implements context.Context.
func (u until) Deadline() (time.Time, bool) { return u.deadline, true }

// land gives the lane to those who wait.
func (p *pipe) land(l *lane) {
	if batch := p.take(l); batch != nil {
		go p.fly(l, batch)
	}
}

// fly sends batch, and then what has gathered meanwhile, until nothing has.
func (p *pipe) fly(l *lane, batch []*request) {
	for ; batch != nil; batch = p.take(l) {
		l.exec(batch)
	}
}

// take returns the next batch, or nil after giving up the lane.
func (p *pipe) take(l *lane) []*request {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := min(len(p.queue), pipeline)
	if n == 0 {
		if p.closed {
			l.drop()
		}
		p.idle = append(p.idle, l)
		return nil
	}
	batch := append([]*request(nil), p.queue[:n]...)
	rest := copy(p.queue, p.queue[n:])
	clear(p.queue[rest:])
	p.queue = p.queue[:rest]
	return batch
}

// close gives back the connections, those in use when they no longer are.
func (p *pipe) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, l := range p.idle {
		l.drop()
	}
}
