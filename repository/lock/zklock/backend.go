package zklock

import (
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

// Acquire implements lockcore.Backend. When its node disappears, it queues again with another one.
func (b *backend) Acquire(ctx context.Context, h *lockcore.Hold) (lockcore.Grant, error) {
	for {
		g, err := b.try(ctx, h)
		if err == nil {
			return g, nil
		}
		if !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrSessionExpired) {
			return nil, err
		}
	}
}

// try queues with a new node until it is the first.
func (b *backend) try(ctx context.Context, h *lockcore.Hold) (*grant, error) {
	n := newNode(b.session, b.config.Root, h.Key)
	deadline := time.Now().Add(h.Settings.Timeout)
	if h.Settings.Try {
		if holder, err := n.first(ctx, deadline); err != nil {
			return nil, err
		} else if holder != "" {
			return nil, lock.ErrHeld
		}
	}
	if r, err := n.create(ctx, deadline); err != nil {
		b.abandon(h, n, r)
		return nil, err
	}
	g, err := b.waitUntilFirst(ctx, h, n)
	if err != nil {
		b.abandon(h, n, nil)
		return nil, err
	}
	b.session.register(h)
	if n.owner != b.session.SessionID() { // the session expired before h was registered
		b.session.unregister(h)
		return nil, zk.ErrSessionExpired
	}
	return g, nil
}

func (b *backend) waitUntilFirst(ctx context.Context, h *lockcore.Hold, n *node) (*grant, error) {
	for {
		sent := time.Now()
		before, err := n.predecessor(ctx, sent.Add(h.Settings.Timeout))
		if err != nil {
			return nil, err
		}
		if before == "" {
			return &grant{node: n, hold: h, validUntil: b.validUntil(h, sent)}, nil
		}
		if h.Settings.Try {
			return nil, lock.ErrHeld
		}
		if err := b.waitForDeletion(ctx, h, n.parent+"/"+before); err != nil {
			return nil, err
		}
	}
}

// validUntil returns the time until which a lock can be trusted; sent is when the confirmed request was sent.
func (b *backend) validUntil(h *lockcore.Hold, sent time.Time) time.Time {
	until := b.session.validUntil(sent)
	if explicit := sent.Add(h.Settings.Lease); h.Settings.Lease > 0 && explicit.Before(until) {
		return explicit
	}
	return until
}

// waitForDeletion returns when the node at path is deleted, and at each poll, in case the watch was lost.
func (b *backend) waitForDeletion(ctx context.Context, h *lockcore.Hold, path string) error {
	deadline := time.Now().Add(h.Settings.Timeout)
	deleted, err := repeat(ctx, b.session, deadline, func() (<-chan zk.Event, error) {
		_, _, events, err := b.session.GetW(path)
		return events, err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	if err != nil {
		return err
	}
	return lockcore.Wait(ctx, h, deleted, b.config.Poll)
}

// abandon removes a node that is no longer wanted. A running request may still create it.
func (b *backend) abandon(h *lockcore.Hold, n *node, r running) {
	if r == nil {
		if errors.Is(n.remove(), lock.ErrUnavailable) {
			h.ReleaseLater(n.remove)
		}
		return
	}
	h.ReleaseLater(func() error {
		select {
		case <-r: // at the latest when the client finds the connection dead
			return n.remove()
		case <-h.Closed():
			return nil // the end of the session removes the node
		}
	})
}

// grant is a lock in ZooKeeper.
type grant struct {
	node       *node
	hold       *lockcore.Hold
	validUntil time.Time
}

// Token implements lockcore.Grant.
func (g *grant) Token() (uint64, bool) { return g.node.token, true }

// ValidUntil implements lockcore.Grant.
func (g *grant) ValidUntil() time.Time { return g.validUntil }

// Renew implements lockcore.Grant. An answer from the server shows that the session is alive.
func (g *grant) Renew(ctx context.Context, deadline time.Time) (time.Time, error) {
	sent := time.Now()
	return g.node.session.validUntil(sent), asLost(g.node.readStat(ctx, deadline))
}

// SetDepth implements lockcore.Grant. ZooKeeper does not store the depth; the request checks that the node exists.
func (g *grant) SetDepth(ctx context.Context, _ int, deadline time.Time) error {
	return asLost(g.node.readStat(ctx, deadline))
}

// Release implements lockcore.Grant.
func (g *grant) Release() error {
	g.node.session.unregister(g.hold)
	return g.node.remove()
}
