package redislock

import (
	"container/list"
	"context"
	"errors"
	"fmt"

	"seckill/service/lock"
)

// slot is this process's place at one key. One hold, or one contender for it, is in it; the others queue behind, first
// come, first served. However many goroutines want a key, Redis sees one.
type slot struct {
	queue list.List // of chan error: nil is an invitation to come in
	hold  *hold     // once granted
	topic *topic    // the news of releases by others, once they were needed
}

// enter waits for the place at the wish's key.
func (l *Locker) enter(ctx context.Context, w *wish) (*slot, error) {
	l.mu.Lock()
	if l.shut {
		l.mu.Unlock()
		return nil, lock.ErrClosed
	}
	s, taken := l.slots[w.key]
	if taken && w.settings.Try {
		l.mu.Unlock()
		return nil, lock.ErrHeld
	}
	l.background.Add(1) // until Acquire returns
	if !taken {
		s = new(slot)
		l.slots[w.key] = s
		l.mu.Unlock()
		return s, nil
	}
	turn := make(chan error, 1)
	at := s.queue.PushBack(turn)
	l.mu.Unlock()
	if err := l.queue(ctx, w, s, at, turn); err != nil {
		l.background.Done()
		return nil, err
	}
	return s, nil
}

// queue waits for its turn, or for what ends the wait before it.
func (l *Locker) queue(ctx context.Context, w *wish, s *slot, at *list.Element, turn <-chan error) error {
	var err error
	select {
	case err := <-turn:
		return err
	case <-ctx.Done():
		err = ended(ctx)
	case <-w.expired:
		err = lock.ErrHeld
	case <-l.closed:
		err = lock.ErrClosed
	}
	l.mu.Lock()
	if len(turn) == 0 {
		s.queue.Remove(at)
		l.mu.Unlock()
		return err
	}
	l.mu.Unlock()
	if invited := <-turn; invited == nil { // too late: let the next one in
		l.leave(w.key, s, err)
	}
	return err
}

// leave gives the place to the next in the queue. If why is that Redis is away, all of them are told so: otherwise each
// would find out for itself, one timeout after the other.
func (l *Locker) leave(key string, s *slot, why error) {
	l.mu.Lock()
	s.hold = nil
	var invitation error
	if l.shut {
		invitation = lock.ErrClosed
	} else if errors.Is(why, lock.ErrUnavailable) {
		invitation = why
	}
	for s.queue.Len() > 0 {
		turn := s.queue.Remove(s.queue.Front()).(chan error)
		turn <- invitation // has room: each is told once
		if invitation == nil {
			l.mu.Unlock()
			return
		}
	}
	delete(l.slots, key)
	l.mu.Unlock()
	if s.topic != nil {
		l.signals.unsubscribe(s.topic)
	}
}

// settle puts h into its place, unless the Locker was closed meanwhile.
func (l *Locker) settle(s *slot, h *hold) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.shut {
		return fmt.Errorf("granted too late: %w", lock.ErrClosed)
	}
	s.hold = h
	return nil
}
