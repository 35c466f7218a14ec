package zklock

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
)

// Break takes the lock named key from whoever holds it, by deleting the first node. It is for an operator who knows that
// the holder is gone, and for showing what that does to one who is not.
func (l *Locker) Break(ctx context.Context, key string) error {
	n := newNode(l.session, l.root, key)
	by := time.Now().Add(l.session.removal)
	children, err := n.siblings(ctx, by)
	if err != nil {
		return err
	}
	lowest := -1
	for _, name := range children {
		if at, ok := sequence(name); ok && (lowest < 0 || at < lowest) {
			lowest, n.name = at, name
		}
	}
	if lowest < 0 {
		return nil
	}
	_, err = retry(ctx, l.session, by, func() (struct{}, error) { return struct{}{}, l.session.Delete(n.path(), -1) })
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// Requests returns how many requests the Locker has sent.
func (l *Locker) Requests() int64 { return l.session.sent.Load() }
