package idgen

import "time"

// Observer receives what happens inside a generator, for logs and counters. Gauges are in the generators' Stats.
type Observer interface {
	// IDEvent runs on the generator's goroutine, outside all locks. It must not block.
	IDEvent(Event)
}

// NoObserver ignores all events. It is the default.
type NoObserver struct{}

func (NoObserver) IDEvent(Event) {}

// Event is one observation. Fields that the description of its kind does not mention are zero.
type Event struct {
	Kind   EventKind
	Step   time.Duration // how far the clock went back, or how far ahead of it the generator is
	Took   time.Duration // how long the store took to answer
	Worker int           // worker in use from now on, counted over all data centres
	Count  int64         // number of ids loaded
	Err    error         // why it failed
}

// EventKind is the kind of an Event. Its String is a metric label.
type EventKind int

// The kinds of events.
const (
	ClockWait      EventKind = iota + 1 // the clock went back by a little (Step): calls wait for it
	ClockAhead                          // the clock went back by more (Step): ids continue from the highest time used
	WorkerSwitched                      // too far ahead of the clock (Step): the other Worker of the pair takes over
	LeaseAcquired                       // a pair was leased (Took), ids carry Worker
	LeaseRenewed                        // the lease was renewed (Took)
	LeaseFailed                         // a lease could not be acquired or renewed (Took, Err); it is tried again
	LeaseLost                           // the lease is gone (Err); calls fail until there is another
	SegmentLoaded                       // Count ids were loaded (Took)
	SegmentFailed                       // ids could not be loaded (Took, Err); it is tried again
)

var eventNames = [...]string{
	ClockWait: "clock-wait", ClockAhead: "clock-ahead", WorkerSwitched: "worker-switched",
	LeaseAcquired: "lease-acquired", LeaseRenewed: "lease-renewed", LeaseFailed: "lease-failed", LeaseLost: "lease-lost",
	SegmentLoaded: "segment-loaded", SegmentFailed: "segment-failed",
}

// String returns the kind in lower case with dashes.
func (k EventKind) String() string {
	if k <= 0 || int(k) >= len(eventNames) {
		return "unknown"
	}
	return eventNames[k]
}
