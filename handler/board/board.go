// Package board is the live board: it shows what one instance of the shop does right now, and streams it to viewers.
//
// A Board is a small dashboard. A few times a second it gathers the shop's Prometheus metrics, derives figures and events
// from them, and publishes what changed to all viewers at once. A poller reads what only the database knows: vouchers, the
// outbox and the other instances. No order waits for the board.
package board

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Config is what a Board needs. Fields without a default are required.
type Config struct {
	Metrics  prometheus.Gatherer // figures.go lists the metrics that the board reads
	Instance string              // name of this instance among all that serve the shop
	Vouchers VoucherLister
	Registry Registry
	Log      *slog.Logger

	MaxViewers   int           // more are refused; default 500
	Every        time.Duration // between two updates; default 250 ms
	WriteTimeout time.Duration // of one frame to a viewer, and so of a stream after Close; default 5 s
}

const (
	idlePace  = 500 * time.Millisecond // between two updates while nobody watches
	heartbeat = time.Second            // longest silence of a stream; viewers reconnect after a longer one
)

// Board collects and streams. Run it; Close ends its streams.
type Board struct {
	cfg    Config
	events timeline
	poller poller

	mu        sync.Mutex // guards the state as of the last update
	hub       hub
	at        int64 // milliseconds since the board began
	sentAt    int64 // when the last frame was published
	figures   figures
	view      shopView // as of the last poll
	sentView  shopView // as of the last update
	lastEvent int64    // number of the last event in a frame
	latencies latencies
	history   history
}

// New prepares a board. It starts nothing until Run.
func New(cfg Config) *Board {
	cfg.MaxViewers = cmp.Or(cfg.MaxViewers, 500)
	cfg.Every = cmp.Or(cfg.Every, 250*time.Millisecond)
	cfg.WriteTimeout = cmp.Or(cfg.WriteTimeout, 5*time.Second)
	b := &Board{cfg: cfg, hub: hub{run: rand.Text()[:8], viewers: map[chan []byte]bool{}}}
	b.events.began = time.Now()
	b.events.add(Started, cfg.Instance)
	b.view = shopView{vouchers: []voucherView{}, instances: []instanceView{}}
	b.sentView = b.view
	b.poller = poller{
		board: b, view: b.view, vouchers: vouchers{lister: cfg.Vouchers, events: &b.events},
		instances: instances{registry: cfg.Registry, own: cfg.Instance, events: &b.events},
	}
	b.update()
	return b
}

// Run updates the board until ctx ends.
func (b *Board) Run(ctx context.Context) {
	var polling sync.WaitGroup
	polling.Go(func() { b.poller.run(ctx) })
	defer polling.Wait()
	for {
		pace := idlePace
		if b.watched() {
			pace = b.cfg.Every
		}
		select {
		case <-time.After(pace):
			b.update()
		case <-ctx.Done():
			return
		}
	}
}

// Close publishes a last update, ends all streams and refuses new ones. It does not wait for the streams.
func (b *Board) Close() {
	b.update()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.hub.close()
}

// Mark adds a note to the timeline.
func (b *Board) Mark(text string) { b.events.add(Mark, text) }

// Drain tells viewers that this instance is shutting down. Their streams go on until Close.
func (b *Board) Drain() {
	b.events.add(Draining, "")
	b.update()
}

// update measures, and publishes what changed since the last update.
func (b *Board) update() {
	metrics, err := b.cfg.Metrics.Gather()
	if err != nil {
		b.cfg.Log.Warn("board: metrics cannot be read", "error", err)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	before := b.figures
	b.at, b.figures = b.events.now(), readFigures(metrics)
	b.latencies.measure(b.at, metrics, b.figures)
	b.view.addFigures(b.figures)
	b.figures["viewers"] = int64(len(b.hub.viewers))
	b.events.addChanges(before, b.figures)
	b.history.add(b.at, b.figures)
	if frame := b.change(before); frame != nil {
		b.sentAt, b.sentView = b.at, b.view
		b.hub.publish(frame)
	}
}

func (b *Board) setView(v shopView) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.view = v
}

// document is what viewers get: a snapshot has all fields, a change only those that differ.
type document struct {
	Instance  string             `json:"instance,omitzero"`
	ID        string             `json:"id,omitzero"`
	StartedAt time.Time          `json:"started_at,omitzero"`
	At        int64              `json:"t"`
	Figures   figures            `json:"figures,omitempty"`
	Vouchers  []voucherView      `json:"vouchers,omitzero"`
	Instances []instanceView     `json:"instances,omitzero"`
	Events    []Event            `json:"events,omitzero"`
	History   map[string][]int64 `json:"history,omitzero"`
}

// change returns the frame with all that differs from the last update, or nil if viewers need none.
func (b *Board) change(before figures) []byte {
	d := document{At: b.at, Figures: b.figures.changedSince(before)}
	if !slices.Equal(b.view.vouchers, b.sentView.vouchers) {
		d.Vouchers = b.view.vouchers
	}
	if !slices.Equal(b.view.instances, b.sentView.instances) {
		d.Instances = b.view.instances
	}
	if events := b.events.between(b.lastEvent, math.MaxInt64); len(events) > 0 {
		d.Events, b.lastEvent = events, events[len(events)-1].N
	}
	same := len(d.Figures) == 0 && d.Vouchers == nil && d.Instances == nil && d.Events == nil
	if same && b.at-b.sentAt < heartbeat.Milliseconds() {
		return nil
	}
	return fmt.Appendf(nil, "id: %s\ndata: %s\n\n", b.hub.frameID(b.hub.next), encode(d))
}

// Snapshot returns the whole state of the board as a JSON document.
func (b *Board) Snapshot() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.snapshot()
}

// snapshot encodes the current state, and the events up to the last frame. It requires b.mu.
func (b *Board) snapshot() []byte {
	return encode(document{
		b.cfg.Instance, b.hub.frameID(b.hub.next - 1), b.events.began.UTC(), b.at, b.figures,
		b.view.vouchers, b.view.instances, b.events.between(0, b.lastEvent), b.history.columns,
	})
}

// encode returns v as JSON on one line. The board's types always encode.
func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("board: %v", err))
	}
	return text
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
