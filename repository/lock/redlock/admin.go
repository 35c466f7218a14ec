package redlock

import (
	"context"
	"errors"
)

// Break takes the lock named key from whoever holds it, on as many servers as are a majority. It is for showing what
// Redlock's assumptions are worth: clocks that jump ahead on these servers have the same effect.
func (l *Locker) Break(ctx context.Context, key string) error {
	var errs error
	for _, n := range l.nodes[:len(l.nodes)/2+1] {
		errs = errors.Join(errs, n.client.Del(ctx, key).Err())
	}
	return errs
}

// Requests returns how many requests the Locker has sent, to all servers together.
func (l *Locker) Requests() int64 {
	var sum int64
	for _, n := range l.nodes {
		sum += n.sent.Load()
	}
	return sum
}
