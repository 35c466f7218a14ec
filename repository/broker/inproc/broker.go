// Package inproc is a broker within one process, for the embedded mode and for tests.
//
// It stores nothing: an event is confirmed when every group has acknowledged it. So an event that is under way when the
// process dies was never confirmed, its row is not marked as sent, and it is published again after the restart. The
// price is that a consumer that is slow holds its publisher up.
package inproc

import (
	"context"
	"fmt"
	"sync"
	"time"

	"seckill/service/outbox"
)

// Options bound a Broker. The zero value of a field stands for its default.
type Options struct {
	// Groups are those that every event has to reach. As long as one of them has no subscription, publishing is
	// ErrUnavailable, so that nothing is confirmed which a consumer that starts a little later would miss. Default:
	// those that have ever subscribed.
	Groups []string

	Queue   int // events that may wait for each group; publishing blocks when they do. Default 1024
	Workers int // events that one subscription handles side by side; those of one key stay in order. Default 16

	// Redeliveries is how often an event is delivered again whose handler failed, before that is its publisher's
	// matter. The first comes after RedeliveryPause, each further one after twice as long. Default 5, from 10 ms on.
	Redeliveries    int
	RedeliveryPause time.Duration

	// DeadLetter is told of events that a handler gave up with ErrPoison; nothing else keeps them. May be nil.
	DeadLetter func(group string, e outbox.Event, err error)
}

func (o *Options) setDefaults() {
	for value, def := range map[*int]int{&o.Queue: 1024, &o.Workers: 16, &o.Redeliveries: 5} {
		if *value <= 0 {
			*value = def
		}
	}
	if o.RedeliveryPause <= 0 {
		o.RedeliveryPause = 10 * time.Millisecond
	}
	if o.DeadLetter == nil {
		o.DeadLetter = func(string, outbox.Event, error) {}
	}
}

// Broker implements outbox.Broker. It keeps the payloads of events until they are handled, also when Publish has
// returned before.
type Broker struct {
	opts   Options
	closed chan struct{}

	mu     sync.Mutex
	done   bool
	groups map[string]*group
}

var _ outbox.Broker = (*Broker)(nil)

// New opens a broker. It starts no goroutine until somebody subscribes.
func New(opts Options) *Broker {
	opts.setDefaults()
	b := &Broker{opts: opts, closed: make(chan struct{}), groups: map[string]*group{}}
	for _, name := range opts.Groups {
		b.groups[name] = newGroup(name, opts)
	}
	return b
}

// Publish hands the events to every group and waits until all have acknowledged.
func (b *Broker) Publish(ctx context.Context, events []outbox.Event) []error {
	call := newCall(len(events))
	groups, err := b.present()
	if err != nil {
		call.fail(err)
		return call.verdicts(nil)
	}
	call.expect(len(groups))
	for i, e := range events {
		for _, g := range groups {
			select {
			case g.lane(e.Key) <- delivery{event: e, call: call, index: i}:
			case <-ctx.Done():
				return call.verdicts(outbox.ErrUnavailable)
			case <-b.closed:
				return call.verdicts(outbox.ErrClosed)
			}
		}
	}
	select {
	case <-call.done:
		return call.verdicts(nil)
	case <-ctx.Done():
		return call.verdicts(outbox.ErrUnavailable)
	case <-b.closed:
		return call.verdicts(outbox.ErrClosed)
	}
}

// present returns the groups if each has somebody who listens.
func (b *Broker) present() ([]*group, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.done {
		return nil, outbox.ErrClosed
	}
	all := make([]*group, 0, len(b.groups))
	for name, g := range b.groups {
		if g.members.Load() == 0 {
			return nil, fmt.Errorf("%w: nobody subscribes to %s", outbox.ErrUnavailable, name)
		}
		all = append(all, g)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%w: nobody subscribes", outbox.ErrUnavailable)
	}
	return all, nil
}

// Subscribe handles the group's events until ctx ends or the broker is closed.
func (b *Broker) Subscribe(ctx context.Context, name string, handle outbox.Handler) error {
	b.mu.Lock()
	if b.done {
		b.mu.Unlock()
		return outbox.ErrClosed
	}
	g := b.groups[name]
	if g == nil {
		g = newGroup(name, b.opts)
		b.groups[name] = g
	}
	g.members.Add(1)
	b.mu.Unlock()

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-b.closed:
			cancel()
		case <-ctx.Done():
		}
	}()
	g.serve(ctx, handle)
	select {
	case <-b.closed:
		return outbox.ErrClosed
	default:
		return nil
	}
}

// Close fails what is not confirmed with ErrClosed and ends all subscriptions; it does not wait for their handlers,
// Subscribe does.
func (b *Broker) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.done {
		b.done = true
		close(b.closed)
	}
	return nil
}
