package service

import (
	"context"
	"time"

	"seckill/service/idgen"
)

// NotificationConsumer is the name under which notifications record the events that they have taken.
const NotificationConsumer = "notification"

// Notification tells a user of a change of an order.
type Notification struct {
	EventID idgen.ID
	Event   OrderEvent
}

// NotificationStore keeps what users are to be told.
type NotificationStore interface {
	// AddNotification records that the event was taken and queues its notification, in one transaction. added is false
	// if the event had been taken before; nothing is done then. After an error the same call again is safe.
	AddNotification(ctx context.Context, n Notification) (added bool, err error)

	// ClaimNotifications takes up to limit notifications that are due, for lease. An order's notifications become due
	// in the order of their versions: one waits until the version before it was sent, but no longer than hold. One
	// that comes after a later version was sent is overtaken, and never due.
	ClaimNotifications(ctx context.Context, limit int, lease, hold time.Duration) ([]ClaimedNotification, error)

	// SentNotification marks a notification as sent.
	SentNotification(ctx context.Context, eventID idgen.ID) error

	// FailedNotification counts an attempt and makes the notification due again after the delay, or gives it up.
	FailedNotification(ctx context.Context, eventID idgen.ID, delay time.Duration, giveUp bool) error
}

// ClaimedNotification is a notification and the number of attempts that failed before.
type ClaimedNotification struct {
	Notification
	Attempts int
}
