package service

import (
	"context"
	"log/slog"
	"time"

	"seckill/service/idgen"
)

// Notifier sends what the notification consumer has queued. A notification is sent at least once: its receiver knows a
// repeated one by its key. Several instances may run at once.
type Notifier struct {
	Store NotificationStore
	Log   *slog.Logger
	// Send tells the outside world; nil leaves it at the log. key is the same each time a notification is sent.
	Send func(ctx context.Context, key string, e OrderEvent) error

	Poll time.Duration // default 1 s
	Hold time.Duration // how long a notification waits for the version before it; default 1 min
}

// The bounds of the notifier's work.
const (
	notifyBatch    = 50
	notifyLease    = 2 * time.Minute // for a batch whose receiver takes its time
	notifyAttempts = 10
	notifyFirst    = 5 * time.Second // pause after the first failure, doubled after each further one
)

// Run sends until ctx ends.
func (n *Notifier) Run(ctx context.Context) {
	poll := orDefault(n.Poll, time.Second)
	for {
		sent, err := n.SendDue(ctx)
		if err != nil && ctx.Err() == nil {
			n.Log.Warn("sending notifications failed; trying again", "error", err)
		}
		if err == nil && sent > 0 { // the next version of an order may be due now
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(poll):
		}
	}
}

// SendDue sends a batch of what is due and returns how many it took.
func (n *Notifier) SendDue(ctx context.Context) (int, error) {
	batch, err := n.Store.ClaimNotifications(ctx, notifyBatch, notifyLease, orDefault(n.Hold, time.Minute))
	if err != nil {
		return 0, err
	}
	for _, c := range batch {
		if err := n.send(ctx, c); err != nil {
			return len(batch), err
		}
	}
	return len(batch), nil
}

func (n *Notifier) send(ctx context.Context, c ClaimedNotification) error {
	if n.Send != nil {
		if err := n.Send(ctx, notificationKey(c.EventID), c.Event); err != nil {
			if ctx.Err() != nil {
				return ctx.Err() // it is due again when its lease ends
			}
			giveUp := c.Attempts+1 >= notifyAttempts
			n.Log.Warn("notification failed", "event", c.EventID, "attempt", c.Attempts+1, "given_up", giveUp, "error", err)
			return n.Store.FailedNotification(ctx, c.EventID, notifyFirst<<c.Attempts, giveUp)
		}
	}
	n.Log.Info("notified", "user", c.Event.UserID, "order", c.Event.OrderID, "type", c.Event.Type, "version", c.Event.Version)
	return n.Store.SentNotification(ctx, c.EventID)
}

func notificationKey(id idgen.ID) string { return "notification-" + id.String() }
