package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// LanesConfig bounds Lanes. The zero value of a field stands for its default.
type LanesConfig struct {
	Workers int // events that are handled side by side; default 16
	Queue   int // events that wait for a worker; default 1024
	// Pause is how long a failed event waits for its next try. Default: 50 ms, then twice as long up to 5 s.
	Pause Pause
	// Tries is how often a failing event is tried; 0 is for ever, until the lanes end.
	Tries int
}

// Lanes is the part of a subscription that all brokers share: it hands events to a handler. Events of one key are
// handled one after the other, in the order in which they were delivered; those of other keys side by side. An event
// that fails is tried again after a pause, and the ones behind it go on meanwhile.
type Lanes struct {
	cfg    LanesConfig
	handle Handler
	lanes  []chan delivery
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
}

// delivery is an event on its way through a lane.
type delivery struct {
	event  Event
	settle func(error)
	tries  int
	due    time.Time // of the next try
}

// StartLanes starts the workers. They end with ctx, or with Stop, which has to be called in any case.
func StartLanes(ctx context.Context, cfg LanesConfig, handle Handler) *Lanes {
	orDefault(&cfg.Workers, 16)
	orDefault(&cfg.Queue, 1024)
	orDefault(&cfg.Pause.First, 50*time.Millisecond)
	orDefault(&cfg.Pause.Longest, 5*time.Second)
	l := &Lanes{cfg: cfg, handle: handle, lanes: make([]chan delivery, cfg.Workers)}
	l.ctx, l.cancel = context.WithCancel(ctx)
	for i := range l.lanes {
		l.lanes[i] = make(chan delivery, max(1, cfg.Queue/cfg.Workers))
		l.work.Go(func() { l.run(l.lanes[i]) })
	}
	return l
}

// Deliver puts an event into its lane, and blocks while that is full. If it returns nil, settle is called once: with
// nil when the handler has acknowledged, with ErrPoison when it gave the event up, with its last error after
// LanesConfig.Tries, or with ErrUnavailable if the lanes ended before. settle must not block for long.
//
// Deliver returns ErrUnavailable if the lanes have ended, or the cause of ctx.
func (l *Lanes) Deliver(ctx context.Context, e Event, settle func(error)) error {
	if l.ctx.Err() != nil {
		return errLanesEnded
	}
	select {
	case l.lane(e.Key) <- delivery{event: e, settle: settle}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.ctx.Done():
		return errLanesEnded
	}
}

var errLanesEnded = fmt.Errorf("%w: the subscription has ended", ErrUnavailable)

func (l *Lanes) lane(key int64) chan delivery {
	// Keys come from generators whose low bits may stand still, so all bits are mixed into those that count:
	// https://probablydance.com/2018/06/16/fibonacci-hashing-the-optimization-that-the-world-forgot-or-a-better-alternative-to-integer-modulo/
	const fibonacci = 0x9E3779B97F4A7C15
	return l.lanes[uint64(key)*fibonacci>>32%uint64(len(l.lanes))]
}

// Stop ends the lanes and waits for the handlers. No settle is called afterwards, except for events whose Deliver runs
// at the same moment.
func (l *Lanes) Stop() {
	l.cancel()
	l.work.Wait()
	for _, lane := range l.lanes { // what was delivered between the end of its worker and that of Deliver
		giveBack(lane)
	}
}

func giveBack(lane chan delivery) {
	for {
		select {
		case d := <-lane:
			d.settle(errLanesEnded)
		default:
			return
		}
	}
}

// run works on one lane. Failed events wait beside it, ordered by their next try.
func (l *Lanes) run(lane chan delivery) {
	var waiting []delivery
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		var due <-chan time.Time
		if len(waiting) > 0 {
			timer.Reset(time.Until(waiting[0].due))
			due = timer.C
		}
		var d delivery
		select {
		case <-l.ctx.Done():
			for _, d := range waiting {
				d.settle(errLanesEnded)
			}
			giveBack(lane)
			return
		case d = <-lane:
		case <-due:
			d, waiting = waiting[0], waiting[1:]
		}
		if !l.try(&d) {
			waiting = insert(waiting, d)
		}
	}
}

// try handles an event once. It returns false if the event has to be tried again.
func (l *Lanes) try(d *delivery) bool {
	err := l.handle(l.ctx, d.event)
	d.tries++
	switch {
	case err == nil, errors.Is(err, ErrPoison), d.tries == l.cfg.Tries:
		d.settle(err)
	case l.ctx.Err() != nil: // broken off, not failed
		d.settle(errors.Join(errLanesEnded, err))
	default:
		d.due = time.Now().Add(doubled(l.cfg.Pause.First, d.tries-1, l.cfg.Pause.Longest))
		return false
	}
	return true
}

// insert keeps the list in the order of due.
func insert(list []delivery, d delivery) []delivery {
	i, _ := slices.BinarySearchFunc(list, d, func(a, b delivery) int { return a.due.Compare(b.due) })
	return slices.Insert(list, i, d)
}
