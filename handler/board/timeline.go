package board

import (
	"sync"
	"time"
)

// Kind names what an event of the board is about. Kinds are part of the API: openapi.yaml lists them.
type Kind string

// The kinds of events. What is the title of a voucher, the name of an instance, the number of a worker, by how much a
// clock went back, or what an admin wrote. Count is how many units there are when a sale opens or goes on, and how many
// orders were placed when it is sold out.
const (
	Started         Kind = "started"
	Draining        Kind = "draining"
	SaleOpened      Kind = "sale-opened"
	SoldOut         Kind = "sold-out"
	OnSaleAgain     Kind = "on-sale-again"
	SaleEnded       Kind = "sale-ended"
	LockOpened      Kind = "lock-breaker-opened"
	LockClosed      Kind = "lock-breaker-closed"
	LocksLost       Kind = "locks-lost"
	QueueFull       Kind = "queue-full"
	OutcomesUnknown Kind = "outcomes-unknown"
	RelayPaused     Kind = "relay-paused"
	RelayResumed    Kind = "relay-resumed"
	EventGivenUp    Kind = "event-given-up"
	DatabaseAway    Kind = "database-away"
	DatabaseBack    Kind = "database-back"
	IDsAway         Kind = "ids-away"
	IDsBack         Kind = "ids-back"
	LeaseAcquired   Kind = "lease-acquired"
	LeaseLost       Kind = "lease-lost"
	ClockBack       Kind = "clock-back"
	WorkerSwitched  Kind = "worker-switched"
	InstanceCame    Kind = "instance-came"
	InstanceWent    Kind = "instance-went"
	InstanceLost    Kind = "instance-lost"
	Mark            Kind = "mark"
)

// Event is a point on the line of events.
type Event struct {
	N     int64  `json:"n"` // grows by one with each event of this instance
	At    int64  `json:"t"` // milliseconds since the board began
	Kind  Kind   `json:"kind"`
	What  string `json:"what,omitempty"`
	Count int64  `json:"count,omitempty"`
}

const (
	// keptEvents are as many as a viewer gets to see of the past.
	keptEvents = 100
	// eventPause is the least time between two events of a kind that may repeat itself.
	eventPause = 2 * time.Second
)

// timeline is the line of events. It is written to whether or not anybody watches.
type timeline struct {
	began time.Time

	mu     sync.Mutex
	last   int64
	events []Event // at most keptEvents, oldest first
}

func (t *timeline) since(at time.Time) int64 { return at.Sub(t.began).Milliseconds() }

// add puts an event on the line.
func (t *timeline) add(at time.Time, kind Kind, what string, count int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.put(Event{At: t.since(at), Kind: kind, What: what, Count: count})
}

// repeat is add for what may happen again and again, unless the same is there since a moment ago. It is not for what
// begins and ends: the line would be wrong about the end.
func (t *timeline) repeat(at time.Time, kind Kind, what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	ms := t.since(at)
	for i := len(t.events) - 1; i >= 0; i-- {
		if e := t.events[i]; e.Kind == kind && ms-e.At < eventPause.Milliseconds() {
			return
		}
	}
	t.put(Event{At: ms, Kind: kind, What: what})
}

// put numbers an event. t.mu is held.
func (t *timeline) put(e Event) {
	if len(t.events) == keptEvents {
		t.events = append(t.events[:0], t.events[1:]...)
	}
	t.last++
	e.N = t.last
	t.events = append(t.events, e)
}

// after returns a copy of the events with higher numbers, and the number of the last.
func (t *timeline) after(n int64) ([]Event, int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n == t.last {
		return nil, n
	}
	for i, e := range t.events {
		if e.N > n {
			return append([]Event(nil), t.events[i:]...), t.last
		}
	}
	return nil, t.last
}
