package repository

import (
	"context"
	"fmt"

	"gorm.io/gorm"

	"seckill/service/outbox"
)

var _ outbox.Admin = (*Outbox)(nil)

var outboxStates = map[outbox.State]int{outbox.Pending: outboxPending, outbox.Sent: outboxSent, outbox.Failed: outboxFailed}

// adminRow is what people see.
type adminRow struct {
	Row           outboxRow `gorm:"embedded"`
	Status        int
	NextRetryTime dbTime
}

const adminColumns = `SELECT event_id, biz_type, biz_id, version, payload, retry_count, created_at, trace_parent, status, next_retry_time FROM outbox_event`

func (r adminRow) entry() outbox.Entry {
	e := outbox.Entry{Event: r.Row.event(), Attempts: r.Row.RetryCount, Due: r.NextRetryTime.Time}
	for state, status := range outboxStates {
		if status == r.Status {
			e.State = state
		}
	}
	return e
}

// List pages by id. A filter by state that few rows pass goes by their index.
func (o *Outbox) List(ctx context.Context, state outbox.State, before int64, limit int) ([]outbox.Entry, error) {
	status, ok := outboxStates[state]
	if !ok {
		return nil, fmt.Errorf("outbox: no state %q", state)
	}
	query, args := adminColumns+` WHERE status = ?`, []any{status}
	if before > 0 {
		query, args = query+` AND event_id < ?`, append(args, before)
	}
	return o.entries(ctx, query+` ORDER BY event_id DESC LIMIT ?`, append(args, limit)...)
}

// Show reads one row.
func (o *Outbox) Show(ctx context.Context, id int64) (outbox.Entry, bool, error) {
	found, err := o.entries(ctx, adminColumns+` WHERE event_id = ?`, id)
	if err != nil || len(found) == 0 {
		return outbox.Entry{}, false, err
	}
	return found[0], true, nil
}

func (o *Outbox) entries(ctx context.Context, query string, args ...any) ([]outbox.Entry, error) {
	var rows []adminRow
	err := o.try(ctx, func(tx *gorm.DB) error {
		rows = rows[:0]
		return tx.Raw(query, args...).Scan(&rows).Error
	})
	entries := make([]outbox.Entry, len(rows))
	for i, r := range rows {
		entries[i] = r.entry()
	}
	return entries, err
}

// Retry leaves alone what somebody is publishing at the moment.
func (o *Outbox) Retry(ctx context.Context, ids []int64) (int, error) {
	return o.retry(ctx, `event_id IN ? AND (status = ? OR status = ? AND lock_owner IS NULL)`, ids, outboxFailed, outboxPending)
}

// RetryFailed works in the index of the failed rows.
func (o *Outbox) RetryFailed(ctx context.Context) (int, error) {
	return o.retry(ctx, `status = ?`, outboxFailed)
}

func (o *Outbox) retry(ctx context.Context, where string, args ...any) (n int, err error) {
	d := o.db.dialect
	set := `UPDATE outbox_event SET status = ?, retry_count = 0, lock_owner = NULL, next_retry_time = ` + d.now + `, updated_at = ` + d.now
	err = o.try(ctx, func(tx *gorm.DB) error {
		result := tx.Exec(set+` WHERE `+where, append([]any{outboxPending}, args...)...)
		n = int(result.RowsAffected)
		return result.Error
	})
	return n, err
}
