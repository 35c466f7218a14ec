package outbox

import (
	"context"
	"sync"
	"time"
)

// Config is what a Relay needs. Store and Broker are required; the zero value of any other field stands for its
// default.
type Config struct {
	Store    Store
	Broker   Publisher
	Observer Observer // default: NoObserver

	BatchSize int // events that are claimed and published together; default 100
	InFlight  int // batches that may be between claim and mark at the same time; default 4

	// Poll is how long the relay waits for a wake-up before it looks by itself, and so the longest that an event waits
	// whose wake-up was lost. Default 2 s.
	Poll time.Duration
	// PublishTimeout bounds one call of Publish. Default 10 s.
	PublishTimeout time.Duration
	// StopTimeout bounds what is left of a call of Publish once Run is told to stop. Default 3 s.
	StopTimeout time.Duration
	// SettleTimeout bounds the marks of one batch. Default 5 s.
	SettleTimeout time.Duration
	// Lease is how long claimed events are kept from others; the events of a process that died are due again after it.
	// It has to be longer than publishing and marking take together. Default 30 s.
	Lease time.Duration

	Retry Retry // of an event whose attempt failed
	Pause Pause // while the broker is away
	Yield Yield // while the shop is busy
}

func (c *Config) setDefaults() {
	if c.Observer == nil {
		c.Observer = NoObserver{}
	}
	orDefault(&c.BatchSize, 100)
	orDefault(&c.InFlight, 4)
	orDefault(&c.Poll, 2*time.Second)
	orDefault(&c.PublishTimeout, 10*time.Second)
	orDefault(&c.StopTimeout, 3*time.Second)
	orDefault(&c.SettleTimeout, 5*time.Second)
	orDefault(&c.Lease, 30*time.Second)
	c.Lease = max(c.Lease, c.PublishTimeout+c.SettleTimeout)
	c.Retry.setDefaults()
	c.Pause.setDefaults()
	c.Yield.setDefaults()
}

func orDefault[T int | time.Duration](v *T, def T) {
	if *v <= 0 {
		*v = def
	}
}

// Relay moves events from a store to a broker. Any number of relays, in one process or in many, may work on the same
// store. It owns neither the store nor the broker.
type Relay struct {
	cfg     Config
	breaker *breaker
	pacer   pacer
	wake    chan struct{} // holds one wake-up that nobody has seen yet
}

// NewRelay prepares a relay. It does nothing until Run.
func NewRelay(cfg Config) *Relay {
	cfg.setDefaults()
	return &Relay{
		cfg:     cfg,
		breaker: &breaker{pause: cfg.Pause, changed: cfg.Observer.Paused},
		pacer:   pacer{Yield: cfg.Yield},
		wake:    make(chan struct{}, 1),
	}
}

// Wake tells the relay that something may be due. It never blocks, and costs next to nothing when the relay is at work.
func (r *Relay) Wake() {
	r.pacer.wakes.Add(1)
	select {
	case r.wake <- struct{}{}:
	default: // a wake-up that nobody has seen yet serves this caller too
	}
}

// Run relays events until ctx ends. It drains the store until nothing is due, then waits for a wake-up or Poll.
//
// When ctx ends it claims nothing more, waits until the batches in hand have their confirmations, for StopTimeout at
// most, marks them and returns. It returns no error: a store or a broker that is away is waited for.
func (r *Relay) Run(ctx context.Context) {
	slots := make(chan struct{}, r.cfg.InFlight)
	var inHand sync.WaitGroup
	defer inHand.Wait()
	timer := time.NewTimer(r.cfg.Poll)
	defer timer.Stop()
	r.pacer.drained = time.Now()
	for {
		r.drain(ctx, slots, &inHand)
		timer.Reset(r.cfg.Poll)
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		case <-timer.C:
		}
	}
}

// drain claims batches until nothing is due. Up to InFlight of them are published and marked side by side.
func (r *Relay) drain(ctx context.Context, slots chan struct{}, inHand *sync.WaitGroup) {
	for {
		start := time.Now()
		select {
		case slots <- struct{}{}: // before the claim: a batch does not wait while its lease runs
		case <-ctx.Done():
			return
		}
		probe, ok := r.breaker.ready(ctx)
		if !ok {
			<-slots
			return
		}
		batch := r.claim(ctx, r.size(probe))
		if len(batch.Events) == 0 {
			<-slots
			if batch.Contended {
				continue
			}
			r.pacer.drained = time.Now()
			return
		}
		send := func() {
			r.send(ctx, batch)
			<-slots
		}
		// Nothing else is published until the outcome of a probe is known. When making way, all of the work counts.
		if probe || r.pacer.busy {
			send()
		} else {
			inHand.Go(send)
		}
		r.pacer.rest(ctx, time.Since(start))
	}
}

// size is how many events to claim.
func (r *Relay) size(probe bool) int {
	if probe {
		return min(r.cfg.BatchSize, probeSize)
	}
	return r.cfg.BatchSize
}

// claim takes a batch; an empty one if the store is away.
func (r *Relay) claim(ctx context.Context, limit int) Batch {
	start := time.Now()
	batch, err := r.cfg.Store.Claim(ctx, Claim{Limit: limit, Lease: r.cfg.Lease})
	if err != nil {
		if ctx.Err() == nil {
			r.cfg.Observer.Failed(err)
		}
		return Batch{}
	}
	if n := len(batch.Events); n > 0 {
		r.cfg.Observer.Claimed(n, time.Since(start))
	}
	return batch
}

// WaitEmpty waits until no event is pending any more, or ctx ends, and returns what was there at last. Events that were
// given up do not hold it up; the result tells them.
func WaitEmpty(ctx context.Context, s Store) (Backlog, error) {
	for {
		start := time.Now()
		b, err := s.Backlog(ctx)
		if err != nil || b.Pending == 0 {
			return b, err
		}
		pause := max(20*time.Millisecond, 5*time.Since(start)) // counting a large backlog must not slow its relay down
		select {
		case <-ctx.Done():
			return b, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}
