package board

import (
	"math"
	"slices"
	"strconv"
	"sync"
	"time"
)

// Kind names what an event of the board is about. Kinds are part of the API: openapi.yaml lists them.
type Kind string

// The kinds of events. Event.What is the title of a voucher, the name of an instance, the number of a worker, the
// milliseconds that a clock went back, the number of events given up so far, or an admin's note. Event.Count is the total of
// units when a sale opens, the stock when it is on sale again, and the orders placed when it is sold out.
const (
	Started           Kind = "started"
	Draining          Kind = "draining"
	SaleOpened        Kind = "sale-opened"
	SoldOut           Kind = "sold-out"
	OnSaleAgain       Kind = "on-sale-again"
	SaleEnded         Kind = "sale-ended"
	LockBreakerOpened Kind = "lock-breaker-opened"
	LockBreakerClosed Kind = "lock-breaker-closed"
	LocksLost         Kind = "locks-lost"
	QueueFull         Kind = "queue-full"
	OutcomesUnknown   Kind = "outcomes-unknown"
	RelayPaused       Kind = "relay-paused"
	RelayResumed      Kind = "relay-resumed"
	EventGivenUp      Kind = "event-given-up"
	DatabaseAway      Kind = "database-away"
	DatabaseBack      Kind = "database-back"
	IDsAway           Kind = "ids-away"
	IDsBack           Kind = "ids-back"
	LeaseAcquired     Kind = "lease-acquired"
	LeaseLost         Kind = "lease-lost"
	ClockBack         Kind = "clock-back"
	WorkerSwitched    Kind = "worker-switched"
	InstanceCame      Kind = "instance-came"
	InstanceWent      Kind = "instance-went"
	InstanceLost      Kind = "instance-lost"
	Mark              Kind = "mark"
)

// Event is a point on the timeline.
type Event struct {
	N     int64  `json:"n"` // grows by one with each event of this instance
	At    int64  `json:"t"` // milliseconds since the board began
	Kind  Kind   `json:"kind"`
	What  string `json:"what,omitempty"`
	Count int64  `json:"count,omitempty"`
}

const (
	keptEvents = 100
	// eventPause is the least time between two events of a kind that may repeat all the time.
	eventPause = 2 * time.Second
)

// timeline holds the latest events, whether or not anybody watches.
type timeline struct {
	began time.Time

	mu     sync.Mutex
	last   int64
	events []Event // at most keptEvents, oldest first
}

// now is the time of the board in milliseconds.
func (t *timeline) now() int64 { return t.since(time.Now()) }

func (t *timeline) since(at time.Time) int64 { return at.Sub(t.began).Milliseconds() }

// add appends an event that happened now.
func (t *timeline) add(kind Kind, what string) { t.put(Event{At: t.now(), Kind: kind, What: what}) }

// put numbers and appends an event.
func (t *timeline) put(e Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last++
	e.N = t.last
	t.events = append(t.events, e)
	t.events = t.events[max(0, len(t.events)-keptEvents):]
}

// addRepeated is add for events that may come in a flood: it drops one that follows another of its kind too soon.
func (t *timeline) addRepeated(kind Kind, what string) {
	now := t.now()
	recent := func(e Event) bool { return e.Kind == kind && now-e.At < eventPause.Milliseconds() }
	if !slices.ContainsFunc(t.between(0, math.MaxInt64), recent) {
		t.add(kind, what)
	}
}

// between returns the events with a number above after and at most upTo.
func (t *timeline) between(after, upTo int64) []Event {
	t.mu.Lock()
	defer t.mu.Unlock()
	events := []Event{} // not nil: it is an empty list in JSON
	for _, e := range t.events {
		if after < e.N && e.N <= upTo {
			events = append(events, e)
		}
	}
	return events
}

// growthEvents are the counters whose growth is an event, and the figure that is its What.
var growthEvents = []struct {
	counter string
	kind    Kind
	what    string
}{
	{"lock_lost", LocksLost, ""}, {"busy", QueueFull, ""}, {"unknown", OutcomesUnknown, ""}, {"given_up", EventGivenUp, "given_up"},
	{"leases", LeaseAcquired, "worker"}, {"leases_lost", LeaseLost, ""}, {"worker_switches", WorkerSwitched, "worker"},
	{"clock_steps", ClockBack, "clock_step"},
}

// stateEvents are the gauges of which each change between 0 and 1 is an event.
var stateEvents = []struct {
	gauge   string
	on, off Kind
}{
	{"lock_open", LockBreakerOpened, LockBreakerClosed}, {"broker_away", RelayPaused, RelayResumed}, {"ids_away", IDsAway, IDsBack},
	{"database_away", DatabaseAway, DatabaseBack},
}

// addChanges adds the events that figures alone tell.
func (t *timeline) addChanges(before, now figures) {
	for _, e := range growthEvents {
		if now[e.counter] <= before[e.counter] {
			continue
		}
		what := ""
		if e.what != "" {
			what = strconv.FormatInt(now[e.what], 10)
		}
		t.addRepeated(e.kind, what)
	}
	for _, e := range stateEvents {
		switch was, is := before[e.gauge] == 1, now[e.gauge] == 1; {
		case is && !was:
			t.add(e.on, "")
		case was && !is:
			t.add(e.off, "")
		}
	}
}
