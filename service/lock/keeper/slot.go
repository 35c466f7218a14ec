package keeper

import (
	"container/list"
	"context"
	"errors"

	"seckill/service/lock"
)

// slot is this process's place at one key. One hold, or one contender for it, is in it; the others queue behind.
type slot struct {
	queue list.List // of chan error: nil is an invitation to come in
}

// enter waits for the place at h's key, if there is a queue. Afterwards, until background.Done, Close waits.
func (k *Keeper) enter(ctx context.Context, h *Hold) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.shut {
		return lock.ErrClosed
	}
	s, taken := k.slots[h.Key]
	if taken && h.Settings.Try {
		return lock.ErrHeld
	}
	k.background.Add(1)
	if !k.opts.Queue {
		return nil
	}
	if !taken {
		k.slots[h.Key] = new(slot)
		return nil
	}
	turn := make(chan error, 1)
	at := s.queue.PushBack(turn)
	k.mu.Unlock()
	err := k.wait(ctx, h, turn)
	k.mu.Lock()
	if err == nil {
		return nil
	}
	if len(turn) == 0 {
		s.queue.Remove(at) // does nothing if it was told why not to come in
	} else if invited := <-turn; invited == nil { // too late: let the next one in
		k.invite(h.Key, err)
	}
	k.background.Done()
	return err
}

// wait waits for the turn, or for what ends the wait before it.
func (k *Keeper) wait(ctx context.Context, h *Hold, turn <-chan error) error {
	select {
	case err := <-turn:
		return err
	case <-ctx.Done():
		return Ended(ctx)
	case <-h.Expired():
		return lock.ErrHeld
	case <-k.closed:
		return lock.ErrClosed
	}
}

// invite gives the place to the next in the queue; k.mu is locked. If why is that the backend is away, all of them are
// told so: otherwise each would find out for itself, one timeout after the other.
func (k *Keeper) invite(key string, why error) {
	s := k.slots[key]
	var refusal error
	if k.shut {
		refusal = lock.ErrClosed
	} else if errors.Is(why, lock.ErrUnavailable) {
		refusal = why
	}
	for s.queue.Len() > 0 {
		turn := s.queue.Remove(s.queue.Front()).(chan error)
		turn <- refusal // has room: each is told once
		if refusal == nil {
			return
		}
	}
	delete(k.slots, key)
}
