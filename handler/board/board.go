// Package board is the live board: what one instance of the shop does right now, pushed to whoever watches.
//
// A Meter counts, by a few atomic additions an order. A Board looks at it twenty times a second while somebody watches
// and twice a second otherwise, encodes what has changed once, and puts it into one ring that all viewers read from. What
// only the database knows (stock, outbox, the other instances) is read by a loop of its own, which may be slow or fail
// without holding up the rest. Nothing here is waited for by an order.
package board

import (
	"context"
	"crypto/rand"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"seckill/service"
)

// Config is what a Board needs. Meter, Instance, Vouchers and Log are required.
type Config struct {
	Meter    *Meter
	Instance string // names this instance among all that serve the shop
	Vouchers service.VoucherStore
	Outbox   OutboxHealth    // nil: the board does not know the outbox
	Registry Registry        // nil: the board knows no other instance
	IDs      func() IDsState // nil: the board does not know them; must not block
	Log      *slog.Logger

	MaxViewers int           // more are refused; default 500
	Every      time.Duration // between two updates while somebody watches; default 50 ms
	// WriteTimeout is how long a viewer may take for what is sent at once, before it is cut off. Default 5 s. A stream
	// whose viewer reads nothing ends this long after Close at the latest.
	WriteTimeout time.Duration
}

// IDsState is how the order ids stand.
type IDsState struct {
	Worker    int           // in use; -1 if ids are not snowflakes
	Ahead     time.Duration // of the clock
	LeaseLeft time.Duration
	Left      int64 // ids at hand, of a segment
}

// idle is the time between two looks while nobody watches.
const idle = historyStep

// Board collects and streams. Run it; Close ends its streams.
type Board struct {
	cfg  Config
	hub  *hub
	shop look // of the database

	polled atomic.Int64 // when the snapshot was asked for last, in milliseconds of the board

	mu       sync.Mutex // guards what the next frame builds on
	now      values
	at       int64 // milliseconds
	told     int64 // when the last frame was published
	view     *shopView
	event    int64 // number of the last one told
	past     history
	speed    speed
	snapshot snapshot
}

// New prepares a board. It starts nothing until Run.
func New(cfg Config) *Board {
	if cfg.MaxViewers <= 0 {
		cfg.MaxViewers = 500
	}
	if cfg.Every <= 0 {
		cfg.Every = 50 * time.Millisecond
	}
	if cfg.WriteTimeout <= 0 {
		cfg.WriteTimeout = 5 * time.Second
	}
	b := &Board{cfg: cfg, hub: newHub(rand.Text()[:8], cfg.MaxViewers)}
	b.shop.init(&b.cfg, b.Watched, b.report)
	b.view = b.shop.view.Load()
	b.tick()
	return b
}

// Run looks at the shop until ctx ends. It tells the other instances then that this one goes.
func (b *Board) Run(ctx context.Context) {
	b.cfg.Meter.event(Started, b.cfg.Instance)
	var reading sync.WaitGroup
	reading.Go(func() { b.shop.run(ctx) })
	defer reading.Wait()
	for {
		every := idle
		if b.Watched() {
			every = b.cfg.Every
		}
		// Looks are at whole multiples, so that the steps of the history are even.
		timer := time.NewTimer(every - time.Since(b.cfg.Meter.began)%every)
		select {
		case <-timer.C:
		case <-b.hub.watched:
		case <-ctx.Done():
			timer.Stop()
			return
		}
		timer.Stop()
		b.tick()
	}
}

// Watched tells whether anybody looks at the board, or did so a moment ago.
func (b *Board) Watched() bool {
	polled := b.polled.Load()
	return b.hub.viewers() > 0 || polled > 0 && b.cfg.Meter.line.since(time.Now())-polled < 5000
}

// Close ends all streams and refuses new ones. It does not wait for them: the HTTP server does.
func (b *Board) Close() {
	b.tick() // the last that happened is still told
	b.hub.close()
}

// Mark puts a note on the line of events.
func (b *Board) Mark(text string) { b.cfg.Meter.event(Mark, text) }

// Drain tells viewers that this instance is about to go. Their streams go on until Close.
func (b *Board) Drain() {
	b.cfg.Meter.event(Draining, "")
	b.tick()
}

// tick takes a look and publishes what has changed.
func (b *Board) tick() {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	before, seen := b.now, b.view
	b.at, b.view = b.cfg.Meter.line.since(now), b.shop.view.Load()
	b.measure()
	b.past.add(b.at, &b.now)
	notice(b.cfg.Meter, &before, &b.now)
	events, last := b.cfg.Meter.line.after(b.event)
	b.event = last
	frame := b.change(&before, seen, events)
	if frame == nil {
		return
	}
	b.told = b.at
	b.hub.publish(frame)
}

// measure brings the figures up to date. b.mu is held.
func (b *Board) measure() {
	v := &b.now
	b.cfg.Meter.read(v)
	b.speed.measure(b.cfg.Meter, b.at, v)
	b.view.read(v)
	v[worker], v[idsLeft] = -1, -1
	if b.cfg.IDs != nil {
		s := b.cfg.IDs()
		v[worker], v[idsLeft] = int64(s.Worker), s.Left
		v[backup] = flag(s.Worker >= 0 && s.Worker%2 == 1)
		v[ahead], v[lease] = s.Ahead.Milliseconds(), int64(s.LeaseLeft/time.Second) // coarse: it changes all the time
	}
	v[viewers] = int64(b.hub.viewers())
}

// report is what other instances get to know of this one.
func (b *Board) report() report {
	b.mu.Lock()
	defer b.mu.Unlock()
	v := &b.now
	return report{
		Began: b.cfg.Meter.began.UnixMilli(), Placed: v[placed], Answered: b.cfg.Meter.answers(), P99: v[p99], Queue: v[queue],
		Worker: v[worker], Backup: v[backup], Ahead: v[ahead], LockOpen: v[lockOpen], BrokerAway: v[brokerAway], IDsAway: v[idsAway],
	}
}
