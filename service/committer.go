package service

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// committer turns single orders into batches. Each sale has a queue of its own; what arrives while one of its batches
// is being committed is the next batch. Nobody waits for a batch to fill: a lone order is a batch of one.
type committer struct {
	store    OrderStore
	observer Observer
	changed  func()
	max      int           // orders a batch
	lanes    int           // batches of one sale at the same time
	timeout  time.Duration // of a batch
	queueMax int64
	slots    chan struct{} // a token for each transaction that may run; first come, first served

	waiting atomic.Int64

	closed atomic.Bool
	begins sync.Mutex     // orders closed before or after busy.Add
	busy   sync.WaitGroup // workers
}

func newCommitter(cfg Config) *committer {
	c := &committer{
		store: cfg.Orders, observer: cfg.Observer, changed: cfg.Changed,
		max: cfg.BatchMax, lanes: 1, timeout: cfg.CommitTimeout, queueMax: int64(cfg.QueueMax),
		slots: make(chan struct{}, cfg.CommitConcurrency),
	}
	if c.max == 1 { // the classic pattern: the row's lock is the queue
		c.lanes = cfg.CommitConcurrency
	}
	return c
}

// ticket is a placement in a queue. Whoever moves state away from ticketWaiting decides what becomes of it.
type ticket struct {
	*Placement
	state atomic.Int32
	done  chan struct{} // closed when the verdict is there
}

const (
	ticketWaiting   int32 = iota
	ticketTaken           // in a batch
	ticketWithdrawn       // its caller left before that
)

// queue holds the tickets of one sale, first in, first out.
type queue struct {
	mu      sync.Mutex
	tickets []*ticket
	running int // lanes at work
}

// commit waits until the placement has its verdict and returns it. If ctx ends first, a placement that is still in the
// queue is withdrawn; one that is on its way is ErrUnknown, and the caller must not touch it any more.
func (c *committer) commit(ctx context.Context, sale *sale, p *Placement) error {
	t := &ticket{Placement: p, done: make(chan struct{})}
	if err := c.enqueue(sale, t); err != nil {
		return err
	}
	select {
	case <-t.done:
		return t.Err
	case <-ctx.Done():
	}
	if t.state.CompareAndSwap(ticketWaiting, ticketWithdrawn) {
		c.observer.Waiting(int(c.waiting.Add(-1)))
		return Unavailable(context.Cause(ctx))
	}
	select { // the verdict may have come at the same moment
	case <-t.done:
		return t.Err
	default:
		return Unknown(context.Cause(ctx))
	}
}

// enqueue puts a ticket into its sale's queue and sees to it that somebody works there.
func (c *committer) enqueue(sale *sale, t *ticket) error {
	if c.closed.Load() {
		return ErrUnavailable
	}
	n := c.waiting.Add(1)
	if n > c.queueMax {
		c.waiting.Add(-1)
		return ErrBusy
	}
	c.observer.Waiting(int(n))
	q := &sale.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running < c.lanes {
		if !c.begin() {
			c.waiting.Add(-1)
			return ErrUnavailable
		}
		q.running++
		go c.work(sale)
	}
	q.tickets = append(q.tickets, t)
	return nil
}

// begin registers a worker, unless the committer is closed.
func (c *committer) begin() bool {
	c.begins.Lock()
	defer c.begins.Unlock()
	if c.closed.Load() {
		return false
	}
	c.busy.Add(1)
	return true
}

// work commits batches until the sale's queue is empty.
func (c *committer) work(sale *sale) {
	defer c.busy.Done()
	for {
		c.slots <- struct{}{} // taken before the batch is: who arrives meanwhile is in it
		batch := c.take(&sale.queue)
		if len(batch) > 0 {
			c.run(sale, batch)
		}
		<-c.slots
		if len(batch) == 0 {
			return
		}
	}
}

// take removes the next batch from the queue. An empty one means that the worker is no longer counted.
func (c *committer) take(q *queue) []*ticket {
	q.mu.Lock()
	defer q.mu.Unlock()
	var batch []*ticket
	n := 0
	for _, t := range q.tickets {
		if len(batch) == c.max {
			break
		}
		n++
		if t.state.CompareAndSwap(ticketWaiting, ticketTaken) {
			batch = append(batch, t)
		}
	}
	clear(q.tickets[:n]) // the array outlives them
	q.tickets = q.tickets[n:]
	if len(batch) == 0 {
		q.tickets = nil
		q.running--
		return nil
	}
	c.observer.Waiting(int(c.waiting.Add(-int64(len(batch)))))
	return batch
}

// run commits one batch and hands out its verdicts. It has a context of its own: a caller who leaves does not stop the
// others, and what was sent to the database is settled as long as time allows.
func (c *committer) run(sale *sale, batch []*ticket) {
	placements := make([]*Placement, len(batch))
	for i, t := range batch {
		placements[i] = t.Placement
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	start := time.Now()
	c.store.Place(ctx, sale.id, placements)
	cancel()
	c.observer.Committed(len(batch), time.Since(start))

	sale.learn(placements)
	wrote := false
	for _, t := range batch {
		wrote = wrote || t.Err == nil && !t.Replayed
		close(t.done)
	}
	if wrote {
		c.changed()
	}
}

// close refuses new tickets and waits until the queues are empty or ctx ends.
func (c *committer) close(ctx context.Context) error {
	c.begins.Lock()
	c.closed.Store(true)
	c.begins.Unlock()
	idle := make(chan struct{})
	go func() {
		c.busy.Wait()
		close(idle)
	}()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
