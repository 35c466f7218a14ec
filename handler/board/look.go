package board

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"seckill/service/outbox"
)

// OutboxHealth is what the board wants to know of the outbox.
type OutboxHealth interface {
	Health(ctx context.Context, staleAfter time.Duration) (outbox.Health, error)
}

// shopView is what was read from the database last. It is never changed, but replaced.
type shopView struct {
	vouchers  []voucherView // the one in focus comes first
	instances []instanceView
	outbox    outbox.Health
	knows     bool // outbox was read
	away      bool // the database did not answer last
}

func (w *shopView) read(v *values) {
	v[stock], v[total], v[outboxDepth], v[outboxOldest], v[outboxFailed] = -1, -1, -1, -1, -1
	if len(w.vouchers) > 0 {
		v[stock], v[total] = w.vouchers[0].Stock, w.vouchers[0].Total
	}
	if w.knows {
		v[outboxDepth], v[outboxFailed], v[outboxOldest] = w.outbox.Pending, w.outbox.Failed, w.outbox.Oldest.Milliseconds()
	}
	v[databaseAway] = flag(w.away)
}

// changedVouchers returns the vouchers if they are not those of before.
func (w *shopView) changedVouchers(before *shopView) []voucherView {
	if before != nil && slices.Equal(w.vouchers, before.vouchers) {
		return nil
	}
	return append([]voucherView{}, w.vouchers...) // none are an empty list, not null
}

// look reads what only the database knows. It runs on one goroutine.
type look struct {
	cfg     *Config
	watched func() bool
	report  func() report

	view atomic.Pointer[shopView]
	next shopView // what will be the view

	shelf shelf
	peers peers

	answered  int64 // when last looked
	active    bool  // answers were given since
	outboxDue time.Time
	beatDue   time.Time
}

func (l *look) init(cfg *Config, watched func() bool, report func() report) {
	l.cfg, l.watched, l.report = cfg, watched, report
	l.shelf = shelf{meter: cfg.Meter, vouchers: cfg.Vouchers}
	l.peers = peers{meter: cfg.Meter, own: cfg.Instance, registry: cfg.Registry}
	l.next.instances = []instanceView{}
	l.publish()
}

func (l *look) publish() {
	view := l.next
	l.view.Store(&view)
}

// Paces of reading while somebody watches, while something is being sold, and while nothing happens.
const (
	watchedPace = 250 * time.Millisecond
	activePace  = time.Second
	idlePace    = 5 * time.Second

	outboxPace = 500 * time.Millisecond // at least; counting a long outbox takes time, so ...
	outboxRest = 30                     // ... it rests this many times as long as it took
	beatPace   = 2 * time.Second        // of telling the other instances
	askTimeout = 5 * time.Second        // of one question to the database: a busy one is not away
	farewell   = time.Second            // of taking leave, for which orders have to wait
)

// run reads until ctx ends, and then takes leave of the other instances.
func (l *look) run(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-ctx.Done():
			l.leave(ctx)
			return
		}
		l.once(ctx)
		timer.Reset(l.pause())
	}
}

// once reads what is due. When nobody watches, that is little.
func (l *look) once(ctx context.Context) {
	answered := l.cfg.Meter.answers()
	l.active, l.answered = answered != l.answered, answered
	now := time.Now()
	err := l.ask(ctx, l.shelf.read)
	if err == nil {
		l.next.vouchers = l.shelf.arrange(now)
	}
	if err == nil && l.cfg.Outbox != nil && !now.Before(l.outboxDue) {
		// To count a long backlog may take longer than we wait, which says nothing about the database.
		l.next.knows = l.ask(ctx, l.readOutbox) == nil
	}
	if err == nil && !now.Before(l.beatDue) {
		l.beatDue = now.Add(beatPace)
		err = l.ask(ctx, func(ctx context.Context) error { return l.peers.beat(ctx, l.report()) })
		l.next.instances = l.peers.list()
	}
	if ctx.Err() != nil {
		return
	}
	if away := err != nil; away != l.next.away {
		l.next.away = away
		kind := DatabaseBack
		if away {
			kind = DatabaseAway
		}
		l.cfg.Meter.event(kind, "")
	}
	l.publish()
}

func (l *look) ask(ctx context.Context, question func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	return question(ctx)
}

// readOutbox takes every pending event for a stale one: so the oldest of all is found.
func (l *look) readOutbox(ctx context.Context) (err error) {
	began, pace := time.Now(), outboxPace
	if !l.watched() {
		pace = idlePace
	}
	defer func() { l.outboxDue = time.Now().Add(max(pace, outboxRest*time.Since(began))) }()
	health, err := l.cfg.Outbox.Health(ctx, 0)
	if err == nil {
		l.next.outbox = health
	}
	return err
}

// pause is how long until the next look.
func (l *look) pause() time.Duration {
	switch {
	case l.watched():
		return watchedPace
	case l.active:
		return activePace
	}
	return min(idlePace, max(watchedPace, time.Until(l.beatDue)))
}

// leave tells the other instances that this one goes.
func (l *look) leave(ctx context.Context) {
	if l.cfg.Registry == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer cancel()
	if err := l.cfg.Registry.Leave(ctx, l.cfg.Instance); err != nil {
		l.cfg.Log.Warn("board: the other instances could not be told that this one goes", "error", err)
	}
}
