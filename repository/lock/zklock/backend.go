package zklock

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"

	"seckill/service/lock"
	"seckill/service/lock/lockcore"
)

// backend takes locks in ZooKeeper.
type backend struct {
	config  Config
	session *session
}

// Acquire implements lockcore.Backend.
func (b *backend) Acquire(ctx context.Context, h *lockcore.Hold) (lockcore.Grant, error) {
	for {
		g, err := b.attempt(ctx, h)
		if err == nil {
			return g, nil
		}
		if !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrSessionExpired) {
			return nil, err
		}
		// The node is gone, with its session or by somebody's hand. Queue again, with another node.
	}
}

// attempt queues with a new node until it is the first.
func (b *backend) attempt(ctx context.Context, h *lockcore.Hold) (*grant, error) {
	n := newNode(b.session, b.config.Root, h.Key)
	by := time.Now().Add(h.Settings.Timeout)
	if h.Settings.Try {
		if taken, err := n.taken(ctx, by); err != nil || taken {
			return nil, cmp.Or(err, lock.ErrHeld)
		}
	}
	under, err := n.create(ctx, by)
	if err != nil {
		b.abandon(h, n, under)
		return nil, err
	}
	g, err := b.queue(ctx, h, n)
	if err != nil {
		b.abandon(h, n, nil)
		return nil, err
	}
	b.session.enlist(h)
	if n.owner != b.session.SessionID() { // it expired before the hold was on the list
		b.session.strike(h)
		return nil, zk.ErrSessionExpired
	}
	return g, nil
}

// queue waits until n is the first.
func (b *backend) queue(ctx context.Context, h *lockcore.Hold, n *node) (*grant, error) {
	for {
		sent := time.Now()
		before, err := n.place(ctx, sent.Add(h.Settings.Timeout))
		if err != nil {
			return nil, err
		}
		if before == "" {
			return &grant{node: n, hold: h, until: b.until(h, sent)}, nil
		}
		if h.Settings.Try {
			return nil, lock.ErrHeld
		}
		if err := b.watch(ctx, h, n.parent+"/"+before); err != nil {
			return nil, err
		}
	}
}

// until returns how long a lock can be trusted that was seen at that time.
func (b *backend) until(h *lockcore.Hold, sent time.Time) time.Time {
	until := b.session.trusted(sent)
	if d := h.Settings.Lease; d > 0 && until.After(sent.Add(d)) {
		until = sent.Add(d)
	}
	return until
}

// watch returns when it is worth looking again: when the node before has gone, and otherwise at each poll, should the
// watch have been lost.
func (b *backend) watch(ctx context.Context, h *lockcore.Hold, before string) error {
	gone, err := retry(ctx, b.session, time.Now().Add(h.Settings.Timeout), func() (<-chan zk.Event, error) {
		_, _, gone, err := b.session.GetW(before)
		return gone, err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	return lockcore.Wait(ctx, h, gone, b.config.Poll)
}

// abandon removes a node that is not wanted any more, or that may come into being until under is closed.
func (b *backend) abandon(h *lockcore.Hold, n *node, under pending) {
	if under == nil {
		if err := n.remove(); errors.Is(err, lock.ErrUnavailable) {
			h.ReleaseLater(n.remove)
		}
		return
	}
	h.ReleaseLater(func() error {
		select {
		case <-under: // the client ends it at the latest when it finds the connection dead
			return n.remove()
		case <-h.Closed(): // the session's end removes the node
			return nil
		}
	})
}

// grant is a lock in ZooKeeper.
type grant struct {
	node  *node
	hold  *lockcore.Hold
	until time.Time
}

// Token implements lockcore.Grant.
func (g *grant) Token() (uint64, bool) { return g.node.token, true }

// ValidUntil implements lockcore.Grant.
func (g *grant) ValidUntil() time.Time { return g.until }

// Renew implements lockcore.Grant: an answer from the server is what prolongs the session.
func (g *grant) Renew(ctx context.Context, by time.Time) (time.Time, error) {
	sent := time.Now()
	return g.node.session.trusted(sent), lostOr(g.node.identify(ctx, by))
}

// SetDepth implements lockcore.Grant. ZooKeeper doesn't know the depth, but whether the node is there.
func (g *grant) SetDepth(ctx context.Context, _ int, by time.Time) error {
	return lostOr(g.node.identify(ctx, by))
}

// Release implements lockcore.Grant.
func (g *grant) Release() error {
	g.node.session.strike(g.hold)
	return g.node.remove()
}
