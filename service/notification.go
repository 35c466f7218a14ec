package service

import (
	"context"
	"log/slog"
	"time"

	"seckill/service/idgen"
)

// NotificationConsumer is the name under which the notification consumer records the events that it has handled.
const NotificationConsumer = "notification"

// Notification informs a user of a change of an order.
type Notification struct {
	EventID idgen.ID
	Event   OrderEvent
}

// ClaimedNotification is a notification with the number of its failed attempts.
type ClaimedNotification struct {
	Notification
	Attempts int
}

// NotificationStore stores the notifications that are to be sent.
type NotificationStore interface {
	// AddNotification records the event as handled and queues its notification, in one transaction. It does nothing and
	// returns false if the event is recorded already. After an error it can safely be called again.
	AddNotification(ctx context.Context, n Notification) (added bool, err error)

	// ClaimNotifications takes up to limit due notifications for lease. The notifications of an order become due in the
	// order of their versions: each waits until the version before it was sent, but not longer than hold. One that is
	// added after a later version was sent is never due.
	ClaimNotifications(ctx context.Context, limit int, lease, hold time.Duration) ([]ClaimedNotification, error)

	// SentNotification marks a notification as sent.
	SentNotification(ctx context.Context, eventID idgen.ID) error

	// FailedNotification counts an attempt, and makes the notification due again after the delay or gives it up.
	FailedNotification(ctx context.Context, eventID idgen.ID, delay time.Duration, giveUp bool) error
}

// Notifier sends the queued notifications, each at least once: a receiver recognizes a repetition by its key. Several
// instances may run at once.
type Notifier struct {
	Store NotificationStore
	Log   *slog.Logger
	// Send sends a notification; nil only logs it. key is the same whenever the notification is sent.
	Send func(ctx context.Context, key string, e OrderEvent) error
}

const (
	notifyPoll       = time.Second
	notifyHold       = time.Minute // how long a notification waits for the version before it
	notifyBatch      = 50
	notifyLease      = 2 * time.Minute // of a batch, for a slow receiver
	notifyAttempts   = 10
	notifyFirstPause = 5 * time.Second // after the first failure, doubled after each further one
)

// Run sends until ctx ends.
func (n *Notifier) Run(ctx context.Context) {
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
		case <-time.After(notifyPoll):
		}
	}
}

// SendDue sends one batch of due notifications and returns its size.
func (n *Notifier) SendDue(ctx context.Context) (int, error) {
	batch, err := n.Store.ClaimNotifications(ctx, notifyBatch, notifyLease, notifyHold)
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
		if err := n.Send(ctx, "notification-"+c.EventID.String(), c.Event); err != nil {
			if ctx.Err() != nil {
				return ctx.Err() // the notification is due again when its lease ends
			}
			giveUp := c.Attempts+1 >= notifyAttempts
			n.Log.Warn("notification failed", "event", c.EventID, "attempt", c.Attempts+1, "given_up", giveUp, "error", err)
			return n.Store.FailedNotification(ctx, c.EventID, notifyFirstPause<<c.Attempts, giveUp)
		}
	}
	n.Log.Info("notified", "user", c.Event.UserID, "order", c.Event.OrderID, "type", c.Event.Type, "version", c.Event.Version)
	return n.Store.SentNotification(ctx, c.EventID)
}
