// Package inproc is a broker within one process, for the embedded mode and for tests.
//
// It stores nothing: an event is confirmed when every group has acknowledged it. So an event that is under way when the
// process dies was never confirmed, its row is not marked as sent, and it is published again after the restart. The
// price is that a consumer that is slow holds its publisher up.
package inproc

import (
	"context"
	"errors"
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

	Queue   int // events that may wait at each subscription; publishing blocks when they do. Default 1024
	Workers int // events that a subscription handles side by side; default 16

	// Tries is how often an event is delivered whose handler fails, before that is its publisher's matter: the first
	// repetition comes after Pause, each further one after twice as long. Default 6, from 10 ms on.
	Tries int
	Pause time.Duration

	// DeadLetter is told of events that a handler gave up with ErrPoison; nothing else keeps them. May be nil.
	DeadLetter func(group string, e outbox.Event, err error)
}

func (o *Options) setDefaults() {
	if o.Tries <= 0 {
		o.Tries = 6
	}
	if o.Pause <= 0 {
		o.Pause = 10 * time.Millisecond
	}
	if o.DeadLetter == nil {
		o.DeadLetter = func(string, outbox.Event, error) {}
	}
}

// Broker implements outbox.Broker. It keeps the payloads of events until they are handled, also when Publish has
// returned before.
type Broker struct {
	opts Options
	life outbox.Lifetime

	mu     sync.Mutex
	groups map[string][]*outbox.Lanes // the subscriptions of each group
}

var _ outbox.Broker = (*Broker)(nil)

// New opens a broker. It starts no goroutine until somebody subscribes.
func New(opts Options) *Broker {
	opts.setDefaults()
	b := &Broker{opts: opts, life: outbox.NewLifetime(), groups: map[string][]*outbox.Lanes{}}
	for _, name := range opts.Groups {
		b.groups[name] = nil
	}
	return b
}

// target is a group at the time of a call.
type target struct {
	name          string
	subscriptions []*outbox.Lanes
}

// Publish hands the events to every group and waits until all have acknowledged.
func (b *Broker) Publish(ctx context.Context, events []outbox.Event) []error {
	targets, err := b.targets()
	if err != nil {
		return outbox.Same(len(events), err)
	}
	call := newCall(len(events), len(targets))
	for i, e := range events {
		for _, t := range targets {
			// By key, so that the events of one key stay in order.
			subscription := t.subscriptions[uint64(e.Key)%uint64(len(t.subscriptions))]
			err := subscription.Deliver(ctx, e, func(err error) { call.answer(i, b.judge(t.name, e, err)) })
			if err != nil {
				call.answer(i, fmt.Errorf("%w: %s: %w", outbox.ErrUnavailable, t.name, err))
			}
		}
	}
	select {
	case <-call.done:
	case <-ctx.Done():
	case <-b.life.Done():
		return call.verdicts(outbox.ErrClosed)
	}
	return call.verdicts(outbox.ErrUnavailable)
}

// judge makes a confirmation of what a subscription says.
func (b *Broker) judge(group string, e outbox.Event, err error) error {
	if errors.Is(err, outbox.ErrPoison) {
		b.opts.DeadLetter(group, e, err)
		return nil
	}
	return err
}

// targets returns the groups if each has somebody who listens.
func (b *Broker) targets() ([]target, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.life.Err(); err != nil {
		return nil, err
	}
	targets := make([]target, 0, len(b.groups))
	for name, subscriptions := range b.groups {
		if len(subscriptions) == 0 {
			return nil, fmt.Errorf("%w: nobody subscribes to %s", outbox.ErrUnavailable, name)
		}
		targets = append(targets, target{name, subscriptions})
	}
	if len(targets) == 0 {
		return nil, fmt.Errorf("%w: nobody subscribes", outbox.ErrUnavailable)
	}
	return targets, nil
}

// Subscribe handles the group's events until ctx ends or the broker is closed.
func (b *Broker) Subscribe(ctx context.Context, group string, handle outbox.Handler) error {
	ctx, cancel := b.life.Bind(ctx)
	defer cancel()
	lanes := outbox.StartLanes(ctx, outbox.LanesConfig{
		Workers: b.opts.Workers, Queue: b.opts.Queue, Tries: b.opts.Tries, Pause: outbox.Pause{First: b.opts.Pause},
	}, handle)
	if b.join(group, lanes) {
		<-ctx.Done()
		b.leave(group, lanes)
	}
	lanes.Stop()
	return b.life.Err()
}

func (b *Broker) join(group string, lanes *outbox.Lanes) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.life.Err() != nil {
		return false
	}
	b.groups[group] = append(b.groups[group][:len(b.groups[group]):len(b.groups[group])], lanes)
	return true
}

// leave replaces the slice, which calls of Publish may be reading.
func (b *Broker) leave(group string, lanes *outbox.Lanes) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var others []*outbox.Lanes
	for _, l := range b.groups[group] {
		if l != lanes {
			others = append(others, l)
		}
	}
	b.groups[group] = others
}

// Close fails what is not confirmed with ErrClosed and ends all subscriptions; it does not wait for their handlers,
// Subscribe does.
func (b *Broker) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.life.End()
	return nil
}
