package service

import (
	"container/list"
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"
)

// committer turns single orders into batches. Each sale has a queue of its own; what arrives while one of its batches
// is being committed is the next batch. Nobody waits for a batch to fill: a lone order is a batch of one.
type committer struct {
	store    OrderStore
	observer Observer
	changed  func()
	log      *slog.Logger
	max      int           // orders a batch
	lanes    int           // batches of one sale at the same time
	timeout  time.Duration // of a batch
	queueMax int
	slots    chan struct{} // a token for each transaction that may run; first come, first served

	mu      sync.Mutex
	closed  bool
	waiting int            // tickets in all queues
	open    sync.WaitGroup // tickets that were let in and have no answer yet; Add under mu, before closed
}

func newCommitter(cfg Config) *committer {
	c := &committer{
		store: cfg.Orders, observer: cfg.Observer, changed: cfg.Changed, log: cfg.Log,
		max: cfg.BatchMax, lanes: 1, timeout: cfg.CommitTimeout, queueMax: cfg.QueueMax,
		slots: make(chan struct{}, cfg.CommitConcurrency),
	}
	if c.max == 1 { // the classic pattern: the row's lock is the queue
		c.lanes = cfg.CommitConcurrency
	}
	return c
}

// ticket is a placement in a queue.
type ticket struct {
	*Placement
	place *list.Element // nil once it has left the queue; guarded by queue.mu
	done  chan struct{} // closed when the verdict is there
}

// queue holds the tickets of one sale, first in, first out. It is a list, because a ticket that is withdrawn leaves
// from the middle: whoever has gone takes up no room, however long the batch before takes.
type queue struct {
	mu      sync.Mutex
	tickets list.List
	running int // lanes at work
}

// remove takes a ticket out of the queue.
func (q *queue) remove(t *ticket) {
	q.tickets.Remove(t.place)
	t.place = nil
}

// commit waits until the placement has its verdict and returns it. If ctx ends first, a placement that is still in the
// queue is withdrawn; one that is on its way is ErrUnknown, and the caller must not touch it any more.
func (c *committer) commit(ctx context.Context, sale *sale, p *Placement) error {
	if ctx.Err() != nil {
		return Unavailable(context.Cause(ctx))
	}
	if err := c.admit(); err != nil {
		return err
	}
	t := &ticket{Placement: p, done: make(chan struct{})}
	c.enqueue(sale, t)
	select {
	case <-t.done:
		return t.Err
	case <-ctx.Done():
	}
	if c.withdraw(&sale.queue, t) {
		return Unavailable(context.Cause(ctx))
	}
	select { // the verdict may have come at the same moment
	case <-t.done:
		return t.Err
	default:
		return Unknown(context.Cause(ctx))
	}
}

// admit lets one ticket in, unless the committer is closed or too much is waiting.
func (c *committer) admit() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return ErrUnavailable
	case c.waiting >= c.queueMax:
		return ErrBusy
	}
	c.open.Add(1)
	c.waiting++
	c.observer.Waiting(c.waiting)
	return nil
}

// left counts tickets that have left their queues. The observer is told under the lock, so that the last that it hears
// is how it is.
func (c *committer) left(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting -= n
	c.observer.Waiting(c.waiting)
}

// enqueue puts a ticket into its sale's queue and sees to it that somebody works there.
func (c *committer) enqueue(sale *sale, t *ticket) {
	q := &sale.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	t.place = q.tickets.PushBack(t)
	if q.running < c.lanes {
		q.running++
		go c.work(sale)
	}
}

// withdraw takes a ticket out of the queue, unless it is in a batch already.
func (c *committer) withdraw(q *queue, t *ticket) bool {
	q.mu.Lock()
	waiting := t.place != nil
	if waiting {
		q.remove(t)
	}
	q.mu.Unlock()
	if waiting {
		c.left(1)
		c.open.Done()
	}
	return waiting
}

// work commits batches until the sale's queue is empty.
func (c *committer) work(sale *sale) {
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
	n := min(q.tickets.Len(), c.max)
	if n == 0 {
		q.running--
		return nil
	}
	batch := make([]*ticket, n)
	for i := range batch {
		batch[i] = q.tickets.Front().Value.(*ticket)
		q.remove(batch[i])
	}
	c.left(n)
	return batch
}

// run commits one batch and hands out its verdicts.
func (c *committer) run(sale *sale, batch []*ticket) {
	placements := make([]*Placement, len(batch))
	for i, t := range batch {
		placements[i] = t.Placement
	}
	start := time.Now()
	c.place(sale, placements)
	c.observer.Committed(len(batch), time.Since(start))

	sale.learn(placements)
	wrote := false
	for _, t := range batch {
		wrote = wrote || t.Err == nil && !t.Replayed
		close(t.done) // from here on the placement is the caller's again
	}
	if wrote {
		c.changed()
	}
	c.open.Add(-len(batch))
}

// place calls the store. The context is its own: a caller who leaves does not stop the others, and what was sent to the
// database is settled as long as time allows.
//
// A store that panics has a defect, but it must not take down the other sales, nor leave its callers waiting. How far
// it got is not known, so that is the verdict.
func (c *committer) place(sale *sale, batch []*Placement) {
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	defer func() {
		if cause := recover(); cause != nil {
			c.log.Error("placing orders panicked", "voucher", sale.id, "orders", len(batch), "panic", cause, "stack", string(debug.Stack()))
			for _, p := range batch {
				p.Err, p.Replayed = Unknown(fmt.Errorf("placing orders panicked: %v", cause)), false
			}
		}
	}()
	c.store.Place(ctx, sale.id, batch)
}

// close refuses new tickets and waits until those that were let in have their answer, or ctx ends.
func (c *committer) close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	idle := make(chan struct{})
	go func() {
		c.open.Wait()
		close(idle)
	}()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
