package inproc

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"seckill/service/outbox"
)

// group is the queues of one group, shared by its subscriptions. It stays when the last of them has gone.
type group struct {
	name    string
	opts    Options
	lanes   []chan delivery // events of one key are in one lane
	members atomic.Int32    // subscriptions
}

func newGroup(name string, opts Options) *group {
	g := &group{name: name, opts: opts, lanes: make([]chan delivery, opts.Workers)}
	for i := range g.lanes {
		g.lanes[i] = make(chan delivery, max(1, opts.Queue/opts.Workers))
	}
	return g
}

func (g *group) lane(key int64) chan delivery {
	// Keys come from generators whose low bits may stand still: https://en.wikipedia.org/wiki/Hash_function#Fibonacci_hashing
	const fibonacci = 0x9E3779B97F4A7C15
	return g.lanes[uint64(key)*fibonacci>>32%uint64(len(g.lanes))]
}

// serve handles events until ctx ends. What is left in the queues then goes back to its publishers, unless other
// subscriptions of the group go on.
func (g *group) serve(ctx context.Context, handle outbox.Handler) {
	var workers sync.WaitGroup
	for _, lane := range g.lanes {
		workers.Go(func() { g.work(ctx, lane, handle) })
	}
	workers.Wait()
	if g.members.Add(-1) > 0 {
		return
	}
	for _, lane := range g.lanes {
		giveBack(lane)
	}
}

func giveBack(lane chan delivery) {
	for {
		select {
		case d := <-lane:
			d.call.answer(d.index, outbox.ErrUnavailable)
		default:
			return
		}
	}
}

func (g *group) work(ctx context.Context, lane chan delivery, handle outbox.Handler) {
	for ctx.Err() == nil {
		select {
		case d := <-lane:
			g.settle(ctx, lane, d, handle(ctx, d.event))
		case <-ctx.Done():
		}
	}
}

// settle answers for a delivery, or puts it back after a pause.
func (g *group) settle(ctx context.Context, lane chan delivery, d delivery, err error) {
	switch {
	case err == nil:
		d.call.answer(d.index, nil)
	case errors.Is(err, outbox.ErrPoison):
		g.opts.DeadLetter(g.name, d.event, err)
		d.call.answer(d.index, nil)
	case ctx.Err() != nil: // broken off, not failed
		d.call.answer(d.index, errors.Join(outbox.ErrUnavailable, err))
	case d.failed == g.opts.Redeliveries:
		d.call.answer(d.index, err)
	default:
		pause := g.opts.RedeliveryPause << d.failed
		d.failed++
		time.AfterFunc(pause, func() {
			select {
			case lane <- d:
			default: // the lane is full: no goroutine waits for it, the publisher sends the event again
				d.call.answer(d.index, err)
			}
		})
	}
}
