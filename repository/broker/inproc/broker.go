// Package inproc is a broker inside one process, for the embedded mode and for tests.
//
// It stores nothing: an event is confirmed when every group has acknowledged it. If the process dies before, the event
// was not confirmed, its row is not marked as sent, and it is published again after the restart. The price is that a slow
// consumer delays its publisher.
package inproc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"seckill/service/outbox"
)

// Options configure a Broker. All of them are optional.
type Options struct {
	// Groups are the groups that every event has to reach. While one of them has no subscription, Publish returns
	// ErrUnavailable, so that no event is confirmed that a consumer misses because it starts later. Default: the groups
	// that have subscribed.
	Groups []string

	// DeadLetter receives the events that a handler gave up; the broker keeps them nowhere else.
	DeadLetter func(group string, e outbox.Event, err error)
}

// An event whose handler keeps failing is delivered maxTries times, the first repetition after firstPause. Its publisher
// then gets the error.
const (
	maxTries   = 6
	firstPause = 10 * time.Millisecond
)

// Broker implements outbox.Broker. It retains payloads until they are handled, also after Publish has returned.
type Broker struct {
	base       *outbox.BrokerBase
	deadLetter func(group string, e outbox.Event, err error)

	mu     sync.Mutex
	groups map[string][]*outbox.Dispatcher // the subscriptions of each group; a slice is replaced, never changed
}

var _ outbox.Broker = (*Broker)(nil)

// New returns a broker.
func New(opts Options) *Broker {
	b := &Broker{base: outbox.NewBrokerBase(), deadLetter: opts.DeadLetter, groups: map[string][]*outbox.Dispatcher{}}
	if b.deadLetter == nil {
		b.deadLetter = func(string, outbox.Event, error) {}
	}
	for _, name := range opts.Groups {
		b.groups[name] = nil
	}
	return b
}

// Publish delivers the events to every group and waits until all have acknowledged them.
func (b *Broker) Publish(ctx context.Context, events []outbox.Event) []error {
	groups, err := b.subscribed()
	if err != nil {
		return outbox.FailAll(events, err)
	}
	p := newPublication(len(events), len(groups))
	for i, e := range events {
		for name, subscriptions := range groups {
			// By key, so that the events of one key stay in order.
			subscription := subscriptions[uint64(e.Key)%uint64(len(subscriptions))]
			err := subscription.Deliver(ctx, e, func(err error) { p.answer(i, b.result(name, e, err)) })
			if err != nil {
				p.answer(i, fmt.Errorf("%w: %s: %w", outbox.ErrUnavailable, name, err))
			}
		}
	}
	select {
	case <-p.done:
	case <-ctx.Done():
	case <-b.base.Closed():
		return p.collect(outbox.ErrClosed)
	}
	return p.collect(outbox.ErrUnavailable)
}

// result turns a handler's error into that of its publisher: an event that was given up counts as delivered.
func (b *Broker) result(group string, e outbox.Event, err error) error {
	if errors.Is(err, outbox.ErrPoison) {
		b.deadLetter(group, e, err)
		return nil
	}
	return err
}

// subscribed returns the groups with their subscriptions. It fails if a group has none.
func (b *Broker) subscribed() (map[string][]*outbox.Dispatcher, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.base.Err(); err != nil {
		return nil, err
	}
	if len(b.groups) == 0 {
		return nil, fmt.Errorf("%w: nobody subscribes", outbox.ErrUnavailable)
	}
	for name, subscriptions := range b.groups {
		if len(subscriptions) == 0 {
			return nil, fmt.Errorf("%w: nobody subscribes to %s", outbox.ErrUnavailable, name)
		}
	}
	return maps.Clone(b.groups), nil
}

// Subscribe handles the group's events until ctx ends or the broker is closed.
func (b *Broker) Subscribe(ctx context.Context, group string, handle outbox.Handler) error {
	return b.base.Subscribe(ctx, func(ctx context.Context) error {
		d := outbox.StartDispatcher(ctx, outbox.DispatcherConfig{MaxTries: maxTries, FirstPause: firstPause}, handle)
		b.change(group, func(subscriptions []*outbox.Dispatcher) []*outbox.Dispatcher { return append(subscriptions, d) })
		<-ctx.Done()
		b.change(group, func(subscriptions []*outbox.Dispatcher) []*outbox.Dispatcher {
			return slices.DeleteFunc(subscriptions, func(other *outbox.Dispatcher) bool { return other == d })
		})
		d.Stop()
		return nil
	})
}

// change replaces the subscriptions of a group, which calls of Publish may be reading.
func (b *Broker) change(group string, edit func([]*outbox.Dispatcher) []*outbox.Dispatcher) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.groups[group] = edit(slices.Clone(b.groups[group]))
}

// Close fails unconfirmed events with ErrClosed and ends all subscriptions. Subscribe waits for the handlers, Close does
// not.
func (b *Broker) Close() error {
	b.base.Close()
	return nil
}

// publication collects the acknowledgements of one call of Publish. They may arrive after the call has returned.
type publication struct {
	done chan struct{} // closed when every event has all its answers

	mu      sync.Mutex
	left    int   // events without all their answers
	missing []int // answers that each event lacks
	results []error
}

func newPublication(events, groups int) *publication {
	p := &publication{done: make(chan struct{}), left: events, missing: slices.Repeat([]int{groups}, events), results: make([]error, events)}
	if events == 0 {
		close(p.done)
	}
	return p
}

// answer records the result of one event in one group. Any failure fails the event.
func (p *publication) answer(index int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.results[index] = err
	}
	if p.missing[index]--; p.missing[index] > 0 {
		return
	}
	if p.left--; p.left == 0 {
		close(p.done)
	}
}

// collect returns the results so far, and unanswered for the events that lack an answer.
func (p *publication) collect(unanswered error) []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	results := slices.Clone(p.results)
	for i := range results {
		if results[i] == nil && p.missing[i] > 0 {
			results[i] = unanswered
		}
	}
	return results
}
