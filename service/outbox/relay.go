package outbox

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"
)

// Observer receives what a relay and its jobs do, for metrics and logs. Its methods must not block and must be safe for
// concurrent use. Embed NoObserver to implement only some of them.
type Observer interface {
	// Published is called after each batch with the time that publishing took.
	Published(o Outcome, took time.Duration)
	// Sent is called for each event that the broker confirmed, with the time since its creation. The creation is from the
	// database's clock, the end from the application's.
	Sent(e Event, age time.Duration)
	// GaveUp is called for each event that is not tried again unless an operator asks for it.
	GaveUp(e Event, err error)
	// Paused is called when the broker is found to be unavailable, with the time until the next try, and with 0 when it
	// is available again.
	Paused(d time.Duration)
	// StoreFailed is called when the store returns an error; the relay continues.
	StoreFailed(err error)
	// Checked is called with each reading of the monitor job.
	Checked(h Health)
}

// Outcome counts the events of one batch by their result.
type Outcome struct {
	Sent        int // confirmed by the broker
	GivenUp     int // refused by the broker, or out of attempts
	Retry       int // result unknown; tried again, at the cost of an attempt
	Unavailable int // the broker is unavailable; tried again at no cost
}

// NoObserver ignores all events.
type NoObserver struct{}

func (NoObserver) Published(Outcome, time.Duration) {}
func (NoObserver) Sent(Event, time.Duration)        {}
func (NoObserver) GaveUp(Event, error)              {}
func (NoObserver) Paused(time.Duration)             {}
func (NoObserver) StoreFailed(error)                {}
func (NoObserver) Checked(Health)                   {}

// Config configures a Relay. Store and Broker are required; zero values of other fields mean their defaults.
type Config struct {
	Store    Store
	Broker   Publisher
	Observer Observer // default: NoObserver

	BatchSize int // events that are claimed and published together; default 100

	// Lease is how long claimed events are kept from other relays. The events of a process that died are due again after
	// it. Publishing a batch may take a third of it, marking the results a sixth. Default 30 s.
	Lease time.Duration
}

const (
	maxInFlight = 4               // batches between claim and mark
	pollEvery   = 2 * time.Second // the longest delay of an event whose wake-up was lost
	stopTimeout = 3 * time.Second // for the confirmations of batches in flight when Run stops
	probeSize   = 10              // events that test whether the broker is available again
)

// Relay moves events from a store to a broker. Any number of relays, in one process or in many, may share a store. A
// relay owns neither the store nor the broker.
type Relay struct {
	cfg      Config
	breaker  *breaker
	throttle throttle
	wake     chan struct{} // holds one wake-up that the relay has not seen yet
}

// NewRelay returns a relay that does nothing until Run or Rescue is called.
func NewRelay(cfg Config) *Relay {
	if cfg.Observer == nil {
		cfg.Observer = NoObserver{}
	}
	cfg.BatchSize = cmp.Or(cfg.BatchSize, 100)
	cfg.Lease = cmp.Or(cfg.Lease, 30*time.Second)
	return &Relay{cfg: cfg, breaker: &breaker{onChange: cfg.Observer.Paused}, wake: make(chan struct{}, 1)}
}

// Wake tells the relay that events may be due. It never blocks.
func (r *Relay) Wake() {
	r.throttle.wakeUps.Add(1)
	select {
	case r.wake <- struct{}{}:
	default: // a pending wake-up covers this one
	}
}

// Run relays events until ctx ends. It drains the store until nothing is due, then waits for a wake-up or two seconds.
//
// When ctx ends it claims no more events, waits up to three seconds for the confirmations of the batches in flight, marks
// their results and returns. It returns no error: it waits for a store or a broker that is unavailable.
func (r *Relay) Run(ctx context.Context) {
	slots := make(chan struct{}, maxInFlight)
	r.throttle.drained = time.Now()
	for ctx.Err() == nil {
		r.drain(ctx, slots)
		select {
		case <-ctx.Done():
		case <-r.wake:
		case <-time.After(pollEvery):
		}
	}
	for range maxInFlight { // until every batch in flight has returned its slot
		slots <- struct{}{}
	}
}

// drain claims and sends batches until nothing is due, up to maxInFlight of them concurrently.
func (r *Relay) drain(ctx context.Context, slots chan struct{}) {
	for {
		start := time.Now()
		select {
		case slots <- struct{}{}: // before the claim, so that a lease does not run while its batch waits
		case <-ctx.Done():
			return
		}
		probe, ok := r.breaker.wait(ctx)
		if !ok {
			<-slots
			return
		}
		batch := r.claim(ctx, probe)
		if len(batch.Events) == 0 {
			<-slots
			if batch.Contended {
				continue
			}
			r.throttle.drained = time.Now()
			return
		}
		send := func() {
			r.send(ctx, batch)
			<-slots
		}
		if probe || r.throttle.busy { // run alone while probing; run in sequence while throttled, to measure the duration
			send()
		} else {
			go send()
		}
		r.throttle.rest(ctx, time.Since(start))
	}
}

// claim takes a batch. It returns an empty one if the store fails.
func (r *Relay) claim(ctx context.Context, probe bool) Batch {
	limit := r.cfg.BatchSize
	if probe {
		limit = min(limit, probeSize)
	}
	batch, err := r.cfg.Store.Claim(ctx, Claim{Limit: limit, Lease: r.cfg.Lease})
	if err != nil && ctx.Err() == nil {
		r.cfg.Observer.StoreFailed(err)
	}
	return batch
}

// Rescue publishes up to 200 events that a relay should have published before: they have been due for a minute, or are due
// again after three failures. It needs no relay to be running. Concurrent rescues take different events.
func (r *Relay) Rescue(ctx context.Context) (Outcome, error) {
	batch, err := r.cfg.Store.Claim(ctx, Claim{Limit: 200, Lease: r.cfg.Lease, Overdue: time.Minute, MinAttempts: 3})
	if err != nil || len(batch.Events) == 0 {
		return Outcome{}, err
	}
	return r.send(ctx, batch), nil
}

// throttle leaves the database to the transactions that append events while there are many of them. The relay writes
// each row twice, so at full speed it would take about as much of the database as they do. While commits come in quick
// succession it rests after each batch; the first commits after a quiet time are relayed at once.
type throttle struct {
	wakeUps atomic.Int64 // wake-ups since measured

	// Used by the relay's goroutine only.
	measured time.Time // start of the current measurement
	busy     bool      // result of the last one
	drained  time.Time // when nothing was due
}

const (
	// busyRate is the number of wake-ups per second that make the shop busy. One group commit takes up to a few hundred
	// orders, so a saturated shop has only some dozen commits per second.
	busyRate   = 10
	busyWindow = 100 * time.Millisecond

	// restFactor is the length of a rest as a multiple of the batch before it: the relay works a tenth of the time.
	restFactor = 9
	// maxLag is how long the relay may fail to drain the store before it rests only as long as it works.
	maxLag = 15 * time.Second
	// longestRest limits the rest after a slow batch: that time was spent waiting, for example for a broker that does not
	// answer, and not on the database.
	longestRest = 2 * time.Second
)

// rest waits after a batch if the shop is busy.
func (t *throttle) rest(ctx context.Context, batch time.Duration) {
	now := time.Now()
	if d := now.Sub(t.measured); d >= busyWindow {
		t.busy = float64(t.wakeUps.Swap(0)) >= busyRate*d.Seconds()
		t.measured = now
	}
	if !t.busy {
		return
	}
	pause := batch * restFactor
	if now.Sub(t.drained) > maxLag {
		pause = batch
	}
	sleep(ctx, min(pause, longestRest))
}
