package redislock

import (
	"context"
	"time"

	"seckill/service/lock"
)

// contend asks Redis for the lock until it is granted, or the wish is over.
func (l *Locker) contend(ctx context.Context, w *wish, s *slot, outer *lease) (*lease, error) {
	h := newHold(l, s, w)
	keys := []any{h.name, l.fences.of(w.key)}
	for {
		sent := time.Now()
		a, err := l.exchange(ctx, &l.scripts.acquire, sent.Add(w.timeout), keys, h.owner, h.ms)
		if err != nil {
			if a.pending != nil {
				l.abandon(h, a.pending)
			}
			return nil, err
		}
		if a.n > 0 {
			return h.grant(ctx, sent, uint64(a.n), outer)
		}
		if w.settings.Try {
			return nil, lock.ErrHeld
		}
		if err := l.await(ctx, w, s, time.Duration(-a.n)*time.Millisecond); err != nil {
			return nil, err
		}
	}
}

// await returns when it is worth asking again: at the news of a release, at the confirmation that news will come (the
// release may have been between the last answer and the subscription), when the holder's lease runs out, and otherwise
// at each poll.
func (l *Locker) await(ctx context.Context, w *wish, s *slot, left time.Duration) error {
	if s.topic == nil {
		s.topic = l.signals.subscribe(channel(w.key))
	}
	wait := l.opts.Poll
	if left > 0 {
		wait = min(wait, left+time.Millisecond)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-s.topic.news:
	case <-timer.C:
	case <-ctx.Done():
		return ended(ctx)
	case <-w.expired:
		return lock.ErrHeld
	case <-l.closed:
		return lock.ErrClosed
	}
	return nil
}

// abandon takes back what an acquisition without an answer may have taken, or may yet take.
func (l *Locker) abandon(h *hold, pending <-chan struct{}) {
	l.spawn(func() {
		select {
		case <-pending: // the client's timeouts bound it
		case <-l.closed:
		}
		l.giveBack(h)
	})
}

// giveBack releases h until Redis answers. It gives up when the lease has ended anyway, or the Locker is closed.
func (l *Locker) giveBack(h *hold) {
	end := time.Now().Add(h.lease)
	for wait := 50 * time.Millisecond; time.Now().Before(end); wait = min(2*wait, time.Second) {
		if _, err := l.sendRelease(h); err == nil {
			return
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-l.closed:
			timer.Stop()
			return
		}
	}
}

// sendRelease asks Redis to free the lock. It has a time of its own: the caller's context may well be over.
func (l *Locker) sendRelease(h *hold) (answer, error) {
	sharded := "0"
	if l.cluster {
		sharded = "1"
	}
	deadline := time.Now().Add(l.opts.Timeout)
	return l.exchange(context.Background(), &l.scripts.release, deadline, []any{h.name}, h.owner, channel(h.key), sharded)
}
