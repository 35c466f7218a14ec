package repository

import (
	"context"
	"maps"
	"slices"
	"time"

	"gorm.io/gorm"

	"seckill/service/outbox"
)

var _ outbox.Maintenance = (*Outbox)(nil)

// Health reads the pending rows, which are few unless something is wrong.
func (o *Outbox) Health(ctx context.Context, staleAfter time.Duration) (outbox.Health, error) {
	d := o.db.dialect
	backlog, err := o.Backlog(ctx)
	if err != nil {
		return outbox.Health{}, err
	}
	var row struct{ Stale, Oldest int64 }
	err = o.try(ctx, func(tx *gorm.DB) error {
		return tx.Raw(`SELECT COUNT(*) AS stale, COALESCE(`+d.millisSince(`MIN(created_at)`)+`, 0) AS oldest
			FROM outbox_event WHERE status = ? AND created_at <= `+d.nowPlus(-staleAfter), outboxPending).Scan(&row).Error
	})
	return outbox.Health{Backlog: backlog, Stale: row.Stale, Oldest: time.Duration(row.Oldest) * time.Millisecond}, err
}

// purged is a row that is about to be deleted.
type purged struct {
	EventID   int64
	BizType   string
	CreatedAt dbTime
}

// Purge reads which rows are old enough without locks, then takes those that nobody else is taking, by their primary
// key: neither inserts nor relays meet its locks.
func (o *Outbox) Purge(ctx context.Context, age time.Duration, limit int, archive bool) (n int, err error) {
	d := o.db.dialect
	err = o.db.change(ctx, func(tx *gorm.DB) error {
		n = 0
		var old []int64
		err := tx.Raw(`SELECT event_id FROM outbox_event `+d.useIndex("outbox_due")+`
			WHERE status = ? AND next_retry_time <= `+d.nowPlus(-age)+` ORDER BY next_retry_time LIMIT ?`, outboxSent, limit).Scan(&old).Error
		if err != nil || len(old) == 0 {
			return err
		}
		var rows []purged
		err = tx.Raw(`SELECT event_id, biz_type, created_at FROM outbox_event WHERE event_id IN ? ORDER BY event_id`+d.exclusiveFree, old).Scan(&rows).Error
		if err != nil || len(rows) == 0 {
			return err
		}
		n = len(rows)
		return o.remove(tx, rows, archive)
	})
	return n, err
}

// remove deletes rows that the transaction has locked, and counts them.
func (o *Outbox) remove(tx *gorm.DB, rows []purged, archive bool) error {
	ids := make([]int64, len(rows))
	for i, r := range rows {
		ids[i] = r.EventID
	}
	if archive {
		err := tx.Exec(`INSERT INTO outbox_archive (event_id, biz_type, biz_id, version, payload, retry_count, created_at, sent_at)
			SELECT event_id, biz_type, biz_id, version, payload, retry_count, created_at, next_retry_time
			FROM outbox_event WHERE event_id IN ?`, ids).Error
		if err != nil {
			return err
		}
	}
	if err := tx.Exec(`DELETE FROM outbox_event WHERE event_id IN ?`, ids).Error; err != nil {
		return err
	}
	return o.countPurged(tx, rows)
}

// countPurged adds rows to what was purged of their types. Types come in one order, so that two purges never wait for
// each other in a circle.
func (o *Outbox) countPurged(tx *gorm.DB, rows []purged) error {
	events, latest := map[string]int{}, map[string]time.Time{}
	for _, r := range rows {
		events[r.BizType]++
		if r.CreatedAt.After(latest[r.BizType]) {
			latest[r.BizType] = r.CreatedAt.Time
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(events)) {
		err := tx.Exec(`INSERT INTO outbox_purged (biz_type, events, latest_created_at) VALUES (?, ?, ?) `+
			o.db.dialect.onConflict("biz_type", `events = events + ?, latest_created_at = `+o.db.dialect.greatest+`(latest_created_at, ?)`),
			kind, events[kind], latest[kind], events[kind], latest[kind]).Error
		if err != nil {
			return err
		}
	}
	return nil
}

// Unconsumed goes through what was sent within the window, in the index.
func (o *Outbox) Unconsumed(ctx context.Context, c outbox.Reconcile, limit int) (ids []int64, err error) {
	d := o.db.dialect
	query := `SELECT e.event_id FROM outbox_event e ` + d.useIndex("outbox_due") + `
		LEFT JOIN consume_record r ON r.consumer = ? AND r.event_id = e.event_id
		WHERE e.status = ? AND e.next_retry_time BETWEEN ` + d.nowPlus(-c.Within) + ` AND ` + d.nowPlus(-c.After) + `
		AND r.event_id IS NULL`
	args := []any{c.Consumer, outboxSent}
	if len(c.Types) > 0 {
		query += ` AND e.biz_type IN ?`
		args = append(args, c.Types)
	}
	err = o.try(ctx, func(tx *gorm.DB) error {
		ids = ids[:0]
		return tx.Raw(query+` ORDER BY e.next_retry_time LIMIT ?`, append(args, limit)...).Scan(&ids).Error
	})
	return ids, err
}
