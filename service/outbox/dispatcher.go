package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// DispatcherConfig limits a Dispatcher. Zero values mean the defaults.
type DispatcherConfig struct {
	Workers    int           // events that are handled concurrently; default 16
	Queue      int           // events that wait for a worker; default 1024
	FirstPause time.Duration // after the first failure of an event, then doubled up to 5 s; default 50 ms
	MaxTries   int           // of a failing event; 0: it is tried until the dispatcher stops
}

// Dispatcher is the part of a subscription that most backends share: it passes events to a handler. Events with the same
// key are handled one after the other, in the order of their delivery; events with different keys concurrently. An event
// that fails is tried again after a pause, and the events behind it are handled meanwhile.
type Dispatcher struct {
	cfg     DispatcherConfig
	handle  Handler
	queues  []chan delivery // one for each worker
	ctx     context.Context
	cancel  context.CancelFunc
	workers sync.WaitGroup
}

// delivery is an event with its state in the dispatcher.
type delivery struct {
	event Event
	done  func(error)
	tries int
	due   time.Time // of the next try
}

// StartDispatcher starts the workers. They stop when ctx ends; the caller must call Stop in any case.
func StartDispatcher(ctx context.Context, cfg DispatcherConfig, handle Handler) *Dispatcher {
	cfg.Workers = cmp.Or(cfg.Workers, 16)
	cfg.Queue = cmp.Or(cfg.Queue, 1024)
	cfg.FirstPause = cmp.Or(cfg.FirstPause, 50*time.Millisecond)
	d := &Dispatcher{cfg: cfg, handle: handle, queues: make([]chan delivery, cfg.Workers)}
	d.ctx, d.cancel = context.WithCancel(ctx)
	for i := range d.queues {
		d.queues[i] = make(chan delivery, max(1, cfg.Queue/cfg.Workers))
		d.workers.Go(func() { d.work(d.queues[i]) })
	}
	return d
}

// errStopped is the result of events that a stopped dispatcher did not handle.
var errStopped = fmt.Errorf("%w: the subscription has ended", ErrUnavailable)

// Deliver adds an event to the queue of its key's worker, and blocks while that is full. If it returns nil, done is
// called exactly once: with nil when the handler has acknowledged the event, with ErrPoison when it gave the event up,
// with its last error after MaxTries, or with ErrUnavailable if the dispatcher stopped before. done must not block.
//
// Deliver returns ErrUnavailable if the dispatcher has stopped, and the cause of ctx if that ends.
func (d *Dispatcher) Deliver(ctx context.Context, e Event, done func(error)) error {
	if d.ctx.Err() != nil {
		return errStopped
	}
	select {
	case d.queue(e.Key) <- delivery{event: e, done: done}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-d.ctx.Done():
		return errStopped
	}
}

// queue chooses a worker by Fibonacci hashing, because the low bits of keys from an id generator may be constant:
// https://probablydance.com/2018/06/16/fibonacci-hashing-the-optimization-that-the-world-forgot-or-a-better-alternative-to-integer-modulo/
func (d *Dispatcher) queue(key int64) chan delivery {
	const fibonacci = 0x9E3779B97F4A7C15
	return d.queues[uint64(key)*fibonacci>>32%uint64(len(d.queues))]
}

// Stop stops the workers and waits for their handlers. done is not called afterwards, except for events whose Deliver
// runs concurrently.
func (d *Dispatcher) Stop() {
	d.cancel()
	d.workers.Wait()
	for _, queue := range d.queues { // Deliver may have added events after the workers had returned
		discard(queue)
	}
}

func discard(queue chan delivery) {
	for {
		select {
		case dl := <-queue:
			dl.done(errStopped)
		default:
			return
		}
	}
}

// work handles the events of one queue, and keeps those that failed in the order of their next try.
func (d *Dispatcher) work(queue chan delivery) {
	var failed []delivery
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var due <-chan time.Time
		if len(failed) > 0 {
			timer.Reset(time.Until(failed[0].due))
			due = timer.C
		}
		var next delivery
		select {
		case <-d.ctx.Done():
			for _, dl := range failed {
				dl.done(errStopped)
			}
			discard(queue)
			return
		case next = <-queue:
		case <-due:
			next, failed = failed[0], failed[1:]
		}
		if !d.try(&next) {
			i, _ := slices.BinarySearchFunc(failed, next, func(a, b delivery) int { return a.due.Compare(b.due) })
			failed = slices.Insert(failed, i, next)
		}
	}
}

// try handles an event once. It returns false if the event has to be tried again.
func (d *Dispatcher) try(dl *delivery) bool {
	err := d.handle(d.ctx, dl.event)
	dl.tries++
	switch {
	case err == nil, errors.Is(err, ErrPoison), dl.tries == d.cfg.MaxTries:
		dl.done(err)
	case d.ctx.Err() != nil: // interrupted, not failed
		dl.done(errors.Join(errStopped, err))
	default:
		dl.due = time.Now().Add(doubled(d.cfg.FirstPause, dl.tries-1, 5*time.Second))
		return false
	}
	return true
}
