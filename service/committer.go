package service

import (
	"context"
	"slices"
	"sync"
	"time"

	"seckill/service/idgen"
)

// committer turns single orders into batches. Each sale has its own queue: the orders that arrive while one of its batches
// is being committed are the next batch. No order waits for a batch to fill: a single order is a batch of one.
type committer struct {
	cfg            Config
	workersPerSale int           // batches of one sale at the same time
	transactions   chan struct{} // holds one value per running transaction; first come, first served

	mu         sync.Mutex // also guards the queues of all sales
	closed     bool
	waiting    int            // orders in all queues
	unanswered sync.WaitGroup // accepted orders without a result; Add under mu, before closed
}

func newCommitter(cfg Config) *committer {
	c := &committer{cfg: cfg, workersPerSale: 1, transactions: make(chan struct{}, cfg.CommitConcurrency)}
	if cfg.BatchMax == 1 { // one transaction per order: orders wait for the row's lock, not in the queue
		c.workersPerSale = cfg.CommitConcurrency
	}
	return c
}

// saleQueue holds the orders of one sale that wait for a batch, guarded by committer.mu.
type saleQueue struct {
	orders  []*Placement
	workers int
}

// submit adds the placement to the next batch, waits for its result and returns it. If ctx ends first, a placement that is
// still in the queue is withdrawn; for one that is in a batch the error is ErrUnknown, and the caller must not touch it any
// more.
func (c *committer) submit(ctx context.Context, sale *saleState, p *Placement) error {
	if ctx.Err() != nil {
		return Unavailable(context.Cause(ctx))
	}
	if err := c.enqueue(sale, p); err != nil {
		return err
	}
	select {
	case <-p.done:
		return p.Err
	case <-ctx.Done():
	}
	if c.withdraw(&sale.queue, p) {
		return Unavailable(context.Cause(ctx))
	}
	select { // the result may have come at the same moment
	case <-p.done:
		return p.Err
	default:
		return Unknown(context.Cause(ctx))
	}
}

// enqueue adds a placement to its sale's queue and starts a worker unless workersPerSale already run. It refuses the
// placement if the committer is closed or too many orders wait.
func (c *committer) enqueue(sale *saleState, p *Placement) error {
	p.done = make(chan struct{})
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return ErrUnavailable
	case c.waiting >= c.cfg.QueueMax:
		return ErrBusy
	}
	c.unanswered.Add(1)
	c.addWaiting(1)
	q := &sale.queue
	q.orders = append(q.orders, p)
	if q.workers < c.workersPerSale {
		q.workers++
		go c.work(sale)
	}
	return nil
}

// addWaiting counts. It calls the observer under the lock, so that its last value is the current one.
func (c *committer) addWaiting(n int) {
	c.waiting += n
	c.cfg.Observer.Waiting(c.waiting)
}

// withdraw takes a placement out of the queue, unless it is in a batch already.
func (c *committer) withdraw(q *saleQueue, p *Placement) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.Index(q.orders, p)
	if i < 0 {
		return false
	}
	q.orders = slices.Delete(q.orders, i, i+1)
	c.addWaiting(-1)
	c.unanswered.Done()
	return true
}

// work commits batches until the sale's queue is empty.
func (c *committer) work(sale *saleState) {
	for {
		c.transactions <- struct{}{} // before the batch is taken: orders that arrive meanwhile are in it
		batch := c.take(&sale.queue)
		if len(batch) > 0 {
			c.commitBatch(sale, batch)
		}
		<-c.transactions
		if len(batch) == 0 {
			return
		}
	}
}

// take removes the next batch from the queue. If there is none, the worker must end.
func (c *committer) take(q *saleQueue) []*Placement {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(len(q.orders), c.cfg.BatchMax)
	if n == 0 {
		q.workers--
		return nil
	}
	batch := slices.Clone(q.orders[:n])
	q.orders = slices.Delete(q.orders, 0, n)
	c.addWaiting(-n)
	return batch
}

// commitBatch commits one batch and hands out its results.
func (c *committer) commitBatch(sale *saleState, batch []*Placement) {
	start := time.Now()
	c.place(sale.id, batch)
	c.cfg.Observer.Committed(len(batch), time.Since(start))

	sale.noteResults(batch)
	wrote := false
	for _, p := range batch {
		wrote = wrote || p.Err == nil && !p.Replayed
		close(p.done) // from here on the placement is the caller's again
	}
	if wrote {
		c.cfg.WakeRelay()
	}
	c.unanswered.Add(-len(batch))
}

// place calls the store, with its own context: a caller that leaves does not stop the others.
//
// If the store panics, it is not known what it did, so the result is ErrUnknown. Other sales go on.
func (c *committer) place(voucherID idgen.ID, batch []*Placement) {
	ctx, cancel := context.WithTimeout(context.Background(), c.cfg.CommitTimeout)
	defer cancel()
	err := recovered(func() error {
		c.cfg.Orders.Place(ctx, voucherID, batch)
		return nil
	})
	if err == nil {
		return
	}
	c.cfg.Log.Error("placing orders failed", "voucher", voucherID, "orders", len(batch), "error", err)
	for _, p := range batch {
		p.Err, p.Replayed = Unknown(err), false
	}
}

// close refuses new orders and waits until all accepted ones have their result, or ctx ends.
func (c *committer) close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	idle := make(chan struct{})
	go func() {
		c.unanswered.Wait()
		close(idle)
	}()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
