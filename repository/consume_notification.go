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

// The states of a row of notification.
const (
	notificationDue       = 0
	notificationSent      = 1
	notificationOvertaken = 2
	notificationGivenUp   = 3
)

var _ service.NotificationStore = (*Consumed)(nil)

// AddNotification queues a notification for an event, once.
func (c *Consumed) AddNotification(ctx context.Context, n service.Notification) (added bool, err error) {
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

// claimedRow is what a claim reads.
type claimedRow struct {
	EventID    int64
	Payload    []byte
	RetryCount int
}

// ClaimNotifications first puts aside what was overtaken, then takes what is due and next in its order's line.
func (c *Consumed) ClaimNotifications(ctx context.Context, limit int, lease, hold time.Duration) (claimed []service.ClaimedNotification, err error) {
	d := c.db.dialect
	const due = `n.status = ? AND n.next_retry_time <= `
	err = c.db.change(ctx, func(tx *gorm.DB) error {
		claimed = nil
		var late []int64
		err := tx.Raw(`SELECT n.event_id FROM notification n WHERE `+due+d.now+` AND EXISTS (SELECT 1 FROM notification later
			WHERE later.order_id = n.order_id AND later.version > n.version AND later.status = ?) LIMIT ?`,
			notificationDue, notificationSent, limit).Scan(&late).Error
		if err == nil && len(late) > 0 {
			err = tx.Exec(`UPDATE notification SET status = ? WHERE event_id IN ? AND status = ?`,
				notificationOvertaken, late, notificationDue).Error
		}
		if err != nil {
			return err
		}
		var next []int64
		err = tx.Raw(`SELECT n.event_id FROM notification n WHERE `+due+d.now+` AND (n.version = 1
			OR n.created_at <= `+d.nowPlus(-hold)+` OR EXISTS (SELECT 1 FROM notification earlier
			WHERE earlier.order_id = n.order_id AND earlier.version = n.version - 1 AND earlier.status <> ?))
			ORDER BY n.next_retry_time, n.event_id LIMIT ?`, notificationDue, notificationDue, limit).Scan(&next).Error
		if err != nil || len(next) == 0 {
			return err
		}
		claimed, err = c.takeNotifications(tx, next, lease)
		return err
	})
	return claimed, err
}

// takeNotifications makes rows the caller's, as far as they are still due.
func (c *Consumed) takeNotifications(tx *gorm.DB, next []int64, lease time.Duration) ([]service.ClaimedNotification, error) {
	d := c.db.dialect
	token := claimToken()
	err := tx.Exec(`UPDATE notification `+d.useIndex("PRIMARY")+` SET lock_owner = ?, next_retry_time = `+d.nowPlus(lease)+`
		WHERE event_id IN ? AND status = ? AND next_retry_time <= `+d.now, token, next, notificationDue).Error
	if err != nil {
		return nil, err
	}
	var rows []claimedRow
	err = tx.Raw(`SELECT event_id, payload, retry_count FROM notification WHERE event_id IN ? AND lock_owner = ? ORDER BY order_id, version`,
		next, token).Scan(&rows).Error
	claimed := make([]service.ClaimedNotification, len(rows))
	for i, r := range rows {
		claimed[i].EventID, claimed[i].Attempts = idgen.ID(r.EventID), r.RetryCount
		if err := json.Unmarshal(r.Payload, &claimed[i].Event); err != nil {
			return nil, fmt.Errorf("notification %d: %w", r.EventID, err)
		}
	}
	return claimed, err
}

// SentNotification marks a row, whoever holds it by now.
func (c *Consumed) SentNotification(ctx context.Context, eventID idgen.ID) error {
	return c.db.change(ctx, func(tx *gorm.DB) error {
		return tx.Exec(`UPDATE notification SET status = ?, lock_owner = NULL, next_retry_time = `+c.db.dialect.now+` WHERE event_id = ?`,
			notificationSent, eventID).Error
	})
}

// FailedNotification counts an attempt, unless another has sent it meanwhile.
func (c *Consumed) FailedNotification(ctx context.Context, eventID idgen.ID, delay time.Duration, giveUp bool) error {
	status := notificationDue
	if giveUp {
		status = notificationGivenUp
	}
	return c.db.change(ctx, func(tx *gorm.DB) error {
		return tx.Exec(`UPDATE notification SET status = ?, retry_count = retry_count + 1, lock_owner = NULL, next_retry_time = `+
			c.db.dialect.nowPlus(delay)+` WHERE event_id = ? AND status = ?`, status, eventID, notificationDue).Error
	})
}
