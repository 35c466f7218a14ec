package repository

import (
	"context"
	"time"

	"gorm.io/gorm"

	"seckill/service/outbox"
)

var _ outbox.Maintenance = (*Outbox)(nil)

// Health reads the pending rows. There are few, unless something is wrong.
func (o *Outbox) Health(ctx context.Context, staleAfter time.Duration) (h outbox.Health, err error) {
	d := o.db.dialect
	if h.Backlog, err = o.Backlog(ctx); err != nil {
		return h, err
	}
	stale, err := queryOutbox[struct{ Stale, Oldest int64 }](ctx, o, `SELECT COUNT(*) AS stale,
		COALESCE(`+d.millisSince(`MIN(created_at)`)+`, 0) AS oldest
		FROM outbox_event WHERE status = ? AND created_at <= `+d.nowPlus(-staleAfter), outboxPending)
	if err != nil {
		return h, err
	}
	h.Stale, h.Oldest = stale[0].Stale, time.Duration(stale[0].Oldest)*time.Millisecond
	return h, nil
}

// Purge finds old rows without locks, and then locks those by their primary key that no other purge has locked. Inserts and
// relays do not touch these rows.
func (o *Outbox) Purge(ctx context.Context, age time.Duration, limit int, archive bool) (n int, err error) {
	d := o.db.dialect
	old := `SELECT event_id FROM outbox_event` + d.useIndex("outbox_due") + `
		WHERE status = ? AND next_retry_time <= ` + d.nowPlus(-age) + ` ORDER BY next_retry_time LIMIT ?`
	err = o.db.inTxUntilKnown(ctx, func(tx *gorm.DB) error {
		n = 0
		var ids, locked []int64
		if err := tx.Raw(old, outboxSent, limit).Scan(&ids).Error; err != nil || len(ids) == 0 {
			return err
		}
		err := tx.Raw(`SELECT event_id FROM outbox_event WHERE event_id IN ? ORDER BY event_id`+d.forUpdateSkipLocked, ids).Scan(&locked).Error
		if err != nil || len(locked) == 0 {
			return err
		}
		n = len(locked)
		return o.remove(tx, locked, archive)
	})
	return n, err
}

// remove deletes or archives locked rows, and counts them.
func (o *Outbox) remove(tx *gorm.DB, ids []int64, archive bool) error {
	if err := o.countPurged(tx, ids); err != nil {
		return err
	}
	if archive {
		err := tx.Exec(`INSERT INTO outbox_archive (event_id, biz_type, biz_id, version, payload, retry_count, created_at, sent_at)
			SELECT event_id, biz_type, biz_id, version, payload, retry_count, created_at, next_retry_time
			FROM outbox_event WHERE event_id IN ?`, ids).Error
		if err != nil {
			return err
		}
	}
	return tx.Exec(`DELETE FROM outbox_event WHERE event_id IN ?`, ids).Error
}

// countPurged adds the rows to the totals of their types, which the audit needs. Concurrent purges lock the types in the
// same order, so they do not deadlock.
func (o *Outbox) countPurged(tx *gorm.DB, ids []int64) error {
	var counts []struct {
		BizType string
		Events  int
		Latest  dbTime
	}
	err := tx.Raw(`SELECT biz_type, COUNT(*) AS events, MAX(created_at) AS latest FROM outbox_event
		WHERE event_id IN ? GROUP BY biz_type ORDER BY biz_type`, ids).Scan(&counts).Error
	if err != nil {
		return err
	}
	for _, c := range counts {
		err := tx.Exec(`INSERT INTO outbox_purged (biz_type, events, latest_created_at) VALUES (?, ?, ?)`+
			o.db.dialect.onConflict("biz_type", `events = events + ?, latest_created_at = `+o.db.dialect.greatest+`(latest_created_at, ?)`),
			c.BizType, c.Events, c.Latest, c.Events, c.Latest).Error
		if err != nil {
			return err
		}
	}
	return nil
}

// Unconsumed reads the events that were sent within the window from the index.
func (o *Outbox) Unconsumed(ctx context.Context, c outbox.Reconcile, limit int) ([]int64, error) {
	d := o.db.dialect
	query := `SELECT e.event_id FROM outbox_event e` + d.useIndex("outbox_due") + `
		LEFT JOIN consume_record r ON r.consumer = ? AND r.event_id = e.event_id
		WHERE e.status = ? AND e.next_retry_time BETWEEN ` + d.nowPlus(-c.Within) + ` AND ` + d.nowPlus(-c.After) + `
		AND r.event_id IS NULL`
	args := []any{c.Consumer, outboxSent}
	if len(c.Types) > 0 {
		query, args = query+` AND e.biz_type IN ?`, append(args, c.Types)
	}
	return queryOutbox[int64](ctx, o, query+` ORDER BY e.next_retry_time LIMIT ?`, append(args, limit)...)
}
