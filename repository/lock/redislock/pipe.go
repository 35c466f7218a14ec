package redislock

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/service/lock"
	"seckill/service/lock/lockcore"
)

// pipe sends requests, and lets those that come at the same time share a batch. Nobody waits for a batch to fill: it
// takes along what arrived while the batches before it were under way, and a lone request goes out at once.
type pipe struct {
	sent atomic.Int64

	mu     sync.Mutex
	closed bool
	idle   []*lane
	queue  []*request
}

// mostRequests is how many requests are sent together at most: it bounds how long the first waits for the last, and for
// how long a script keeps the server from others.
const mostRequests = 256

// newPipe leaves the client at least half of its connections, where lanes keep theirs.
func newPipe(client redis.UniversalClient, lanes int) *pipe {
	if single, ok := client.(*redis.Client); ok {
		lanes = min(lanes, max(1, single.Options().PoolSize/2))
	}
	p := &pipe{}
	for range lanes {
		p.idle = append(p.idle, &lane{client: client})
	}
	return p
}

// do sends r and waits for its answer, until the deadline at the latest. If it returns before the answer, r must not be
// read, and pending is closed when the request is over.
func (p *pipe) do(ctx context.Context, r *request, deadline time.Time) (pending <-chan struct{}, err error) {
	p.sent.Add(1)
	r.done = make(chan struct{})
	p.enqueue(r)
	timer := startTimer(time.Until(deadline))
	defer stopTimer(timer)
	select {
	case <-r.done:
		return nil, r.err
	case <-ctx.Done():
		return r.done, lockcore.Ended(ctx)
	case <-timer.C:
		return r.done, fmt.Errorf("%w: no answer in time", lock.ErrUnavailable)
	}
}

// enqueue puts r into the queue and sees to it that a lane comes for it.
func (p *pipe) enqueue(r *request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = append(p.queue, r)
	if last := len(p.idle) - 1; last >= 0 {
		l := p.idle[last]
		p.idle = p.idle[:last]
		go p.fly(l)
	}
}

// fly sends batches until nothing is left to send. Before it takes one it lets every goroutine run that can: those that
// are about to ask come along. Where there are none, that costs nothing.
func (p *pipe) fly(l *lane) {
	for {
		runtime.Gosched()
		batch := p.take(l)
		if batch == nil {
			return
		}
		l.exec(batch)
	}
}

// take returns the next batch, or nil after giving up the lane.
func (p *pipe) take(l *lane) []*request {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := min(len(p.queue), mostRequests)
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
