package lockcore

import (
	"container/list"
	"context"
	"errors"
	"time"

	"seckill/service/lock"
)

// enterQueue waits until h may ask the backend for its key. When it returns nil, the caller has to call
// c.background.Done after the acquisition, and leaveQueue when it failed or when the lock is free again.
func (c *Core) enterQueue(ctx context.Context, h *Hold) error {
	w, mustWait, err := c.joinQueue(h)
	if err != nil || !mustWait {
		return err
	}
	err = h.waitForTurn(ctx, w.turn)
	if err != nil {
		c.giveUp(w, h.Key, err)
	}
	return err
}

// waiter is a caller in a queue.
type waiter struct {
	turn  chan error // delivers nil when it is the caller's turn, or why it will never be
	queue *list.List
	place *list.Element
}

// joinQueue registers the acquisition, and puts the caller into the queue if another caller holds the lock or asks for it.
func (c *Core) joinQueue(h *Hold) (w waiter, mustWait bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed() {
		return w, false, lock.ErrClosed
	}
	queue, busy := c.queues[h.Key]
	if busy && h.Settings.Try {
		return w, false, lock.ErrHeld
	}
	c.background.Add(1)
	switch {
	case !c.opts.Queue:
		return w, false, nil
	case !busy:
		c.queues[h.Key] = list.New()
		return w, false, nil
	}
	w = waiter{turn: make(chan error, 1), queue: queue}
	w.place = queue.PushBack(w.turn)
	return w, true, nil
}

// giveUp takes a caller that does not wait any longer out of its queue. If its turn came too late, the next caller gets it.
func (c *Core) giveUp(w waiter, key string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.queue.Remove(w.place) // does nothing if the turn was delivered
	if len(w.turn) > 0 && <-w.turn == nil {
		c.callNext(key, err)
	}
	c.background.Done()
}

func (h *Hold) waitForTurn(ctx context.Context, turn <-chan error) error {
	select {
	case err := <-turn:
		return err
	case <-ctx.Done():
		return Ended(ctx)
	case <-h.waitOver:
		return lock.ErrHeld
	case <-h.core.closed:
		return lock.ErrClosed
	}
}

// leaveQueue lets the next caller for h's key ask the backend. err is why h ended, or nil.
func (c *Core) leaveQueue(h *Hold, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.holds, h)
	if c.opts.Queue {
		c.callNext(h.Key, err)
	}
}

// callNext gives the turn to the next caller for key; c.mu is locked. If err says that the backend is unavailable, all
// waiting callers get err: otherwise each of them would ask the backend in turn, and wait for its own timeout.
func (c *Core) callNext(key string, err error) {
	var refusal error
	if c.isClosed() {
		refusal = lock.ErrClosed
	} else if errors.Is(err, lock.ErrUnavailable) {
		refusal = err
	}
	queue := c.queues[key]
	for queue.Len() > 0 {
		turn := queue.Remove(queue.Front()).(chan error)
		turn <- refusal // never blocks: the channel has room for the one value it gets
		if refusal == nil {
			return
		}
	}
	delete(c.queues, key)
}

// Wait blocks a Backend's Acquire until wake delivers or timeout has passed. It returns an error when the acquisition
// has to end with it: ctx has ended, the caller does not want to wait any longer, or the Core was closed.
func Wait[T any](ctx context.Context, h *Hold, wake <-chan T, timeout time.Duration) error {
	select {
	case <-wake:
	case <-time.After(timeout):
	case <-ctx.Done():
		return Ended(ctx)
	case <-h.waitOver:
		return lock.ErrHeld
	case <-h.core.closed:
		return lock.ErrClosed
	}
	return nil
}
