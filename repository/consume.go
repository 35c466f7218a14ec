package repository

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"gorm.io/gorm"

	"seckill/service"
	"seckill/service/idgen"
)

// ConsumerStore stores which events the consumers have handled, and the effects of these events.
type ConsumerStore struct{ db *DB }

var (
	_ service.PointsStore       = (*ConsumerStore)(nil)
	_ service.NotificationStore = (*ConsumerStore)(nil)
)

// NewConsumerStore returns the store of the consumers.
func NewConsumerStore(db *DB) *ConsumerStore { return &ConsumerStore{db: db} }

// once runs effect in a transaction that records the event first. Concurrent deliveries of an event wait for each other at the
// record: the later one finds it, or takes over if the earlier one rolled back. The transaction is repeated after a
// deadlock, a lost connection, or a commit whose answer was lost; the record shows whether that commit took effect.
func (c *ConsumerStore) once(ctx context.Context, consumer string, eventID idgen.ID, effect func(tx *gorm.DB) error) (first bool, err error) {
	d := c.db.dialect
	record := `INSERT INTO consume_record (consumer, event_id, consumed_at) VALUES (?, ?, ` + d.now + `)` +
		d.onConflictDoNothing("consume_record", "consumer")
	err = c.db.inTxUntilKnown(ctx, func(tx *gorm.DB) error {
		result := tx.Exec(record, consumer, eventID)
		first = result.RowsAffected == 1
		if result.Error != nil || !first {
			return result.Error
		}
		return effect(tx)
	})
	return first && err == nil, err
}

// BookPoints adds the points for an event, once.
func (c *ConsumerStore) BookPoints(ctx context.Context, eventID idgen.ID, e service.PointsEntry) (booked bool, err error) {
	return c.once(ctx, service.PointsConsumer, eventID, func(tx *gorm.DB) error {
		return tx.Exec(`INSERT INTO points_entry (order_id, user_id, points, created_at) VALUES (?, ?, ?, `+c.db.dialect.now+`)`,
			e.OrderID, e.UserID, e.Points).Error
	})
}

// The states of a row of notification.
const (
	notificationDue       = 0
	notificationSent      = 1
	notificationOvertaken = 2
	notificationGivenUp   = 3
)

// AddNotification queues a notification for an event, once.
func (c *ConsumerStore) AddNotification(ctx context.Context, n service.Notification) (added bool, err error) {
	payload, err := n.Event.Payload()
	if err != nil {
		return false, err
	}
	now := c.db.dialect.now
	return c.once(ctx, service.NotificationConsumer, n.EventID, func(tx *gorm.DB) error {
		return tx.Exec(`INSERT INTO notification (event_id, order_id, version, user_id, biz_type, payload, next_retry_time, created_at)
			VALUES (?, ?, ?, ?, ?, ?, `+now+`, `+now+`)`,
			n.EventID, n.Event.OrderID, n.Event.Version, n.Event.UserID, string(n.Event.Type), payload).Error
	})
}

// ClaimNotifications marks overtaken notifications, and then takes those that are due and next for their order. Versions of
// an order are sent one after the other: a notification waits until the one before it was sent or given up, but no longer than
// hold after its own creation, since the one before it may never arrive.
func (c *ConsumerStore) ClaimNotifications(ctx context.Context, limit int, lease, hold time.Duration) (claimed []service.ClaimedNotification, err error) {
	d := c.db.dialect
	due := `SELECT n.event_id FROM notification n WHERE n.status = ? AND n.next_retry_time <= ` + d.now
	overtaken := due + ` AND EXISTS (SELECT 1 FROM notification later
		WHERE later.order_id = n.order_id AND later.version > n.version AND later.status = ?) LIMIT ?`
	next := due + ` AND (n.version = 1 OR n.created_at <= ` + d.nowPlus(-hold) + ` OR EXISTS (SELECT 1 FROM notification earlier
		WHERE earlier.order_id = n.order_id AND earlier.version = n.version - 1 AND earlier.status <> ?))
		ORDER BY n.next_retry_time, n.event_id LIMIT ?`
	err = c.db.inTxUntilKnown(ctx, func(tx *gorm.DB) error {
		claimed = nil
		var ids []int64
		if err := tx.Raw(overtaken, notificationDue, notificationSent, limit).Scan(&ids).Error; err != nil {
			return err
		}
		if len(ids) > 0 {
			err := tx.Exec(`UPDATE notification SET status = ? WHERE event_id IN ? AND status = ?`, notificationOvertaken, ids, notificationDue).Error
			if err != nil {
				return err
			}
		}
		ids = nil
		err := tx.Raw(next, notificationDue, notificationDue, limit).Scan(&ids).Error
		if err != nil || len(ids) == 0 {
			return err
		}
		claimed, err = c.takeNotifications(tx, ids, lease)
		return err
	})
	return claimed, err
}

// takeNotifications takes the rows that are still due.
func (c *ConsumerStore) takeNotifications(tx *gorm.DB, ids []int64, lease time.Duration) ([]service.ClaimedNotification, error) {
	d, token := c.db.dialect, claimToken()
	err := tx.Exec(`UPDATE notification`+d.useIndex("PRIMARY")+` SET lock_owner = ?, next_retry_time = `+d.nowPlus(lease)+`
		WHERE event_id IN ? AND status = ? AND next_retry_time <= `+d.now, token, ids, notificationDue).Error
	if err != nil {
		return nil, err
	}
	var rows []struct {
		EventID    int64
		Payload    []byte
		RetryCount int
	}
	err = tx.Raw(`SELECT event_id, payload, retry_count FROM notification WHERE event_id IN ? AND lock_owner = ? ORDER BY order_id, version`,
		ids, token).Scan(&rows).Error
	claimed := make([]service.ClaimedNotification, len(rows))
	for i, r := range rows {
		claimed[i].EventID, claimed[i].Attempts = idgen.ID(r.EventID), r.RetryCount
		if err := json.Unmarshal(r.Payload, &claimed[i].Event); err != nil {
			return nil, fmt.Errorf("notification %d: %w", r.EventID, err)
		}
	}
	return claimed, err
}

// SentNotification marks a row, even if another notifier holds it.
func (c *ConsumerStore) SentNotification(ctx context.Context, eventID idgen.ID) error {
	return c.db.inTxUntilKnown(ctx, func(tx *gorm.DB) error {
		return tx.Exec(`UPDATE notification SET status = ?, lock_owner = NULL, next_retry_time = `+c.db.dialect.now+` WHERE event_id = ?`,
			notificationSent, eventID).Error
	})
}

// FailedNotification counts an attempt, unless another notifier has sent the notification.
func (c *ConsumerStore) FailedNotification(ctx context.Context, eventID idgen.ID, delay time.Duration, giveUp bool) error {
	status := notificationDue
	if giveUp {
		status = notificationGivenUp
	}
	return c.db.inTxUntilKnown(ctx, func(tx *gorm.DB) error {
		return tx.Exec(`UPDATE notification SET status = ?, retry_count = retry_count + 1, lock_owner = NULL, next_retry_time = `+
			c.db.dialect.nowPlus(delay)+` WHERE event_id = ? AND status = ?`, status, eventID, notificationDue).Error
	})
}
