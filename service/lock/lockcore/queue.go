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
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.shut {
		return lock.ErrClosed
	}
	queue, busy := c.queues[h.Key]
	if busy && h.Settings.Try {
		return lock.ErrHeld
	}
	c.background.Add(1)
	if !c.opts.Queue {
		return nil
	}
	if !busy {
		c.queues[h.Key] = list.New()
		return nil
	}
	turn := make(chan error, 1) // delivers nil when it is h's turn, or why it will never be
	place := queue.PushBack(turn)
	c.mu.Unlock()
	err := h.waitForTurn(ctx, turn)
	c.mu.Lock()
	if err == nil {
		return nil
	}
	queue.Remove(place) // does nothing if the turn was delivered
	if len(turn) > 0 && <-turn == nil {
		c.callNext(h.Key, err) // the turn came too late
	}
	c.background.Done()
	return err
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

// callNext gives the turn to the next caller for key; c.mu is locked. If the caller before failed because the backend
// is unavailable, all callers get that error: otherwise they would find out one after the other, each after a timeout.
func (c *Core) callNext(key string, err error) {
	var refusal error
	if c.shut {
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
