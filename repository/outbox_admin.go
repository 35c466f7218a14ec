package repository

import (
	"context"
	"fmt"
	"slices"

	"seckill/service/outbox"
)

var _ outbox.Admin = (*Outbox)(nil)

var outboxStates = []outbox.State{outboxPending: outbox.Pending, outboxSent: outbox.Sent, outboxFailed: outbox.Failed}

// outboxEntryRow is a row as an operator sees it.
type outboxEntryRow struct {
	Row           outboxRow `gorm:"embedded"`
	Status        int
	NextRetryTime dbTime
}

func (r outboxEntryRow) entry() outbox.Entry {
	return outbox.Entry{Event: r.Row.event(), State: outboxStates[r.Status], Attempts: r.Row.RetryCount, Due: r.NextRetryTime.Time}
}

// List pages by id, the highest first. The index on the state finds failed and pending rows, of which there are few.
func (o *Outbox) List(ctx context.Context, state outbox.State, before int64, limit int) ([]outbox.Entry, error) {
	status := slices.Index(outboxStates, state)
	if status < 0 {
		return nil, fmt.Errorf("outbox: unknown state %q", state)
	}
	where, args := `status = ?`, []any{status}
	if before > 0 {
		where, args = where+` AND event_id < ?`, append(args, before)
	}
	return o.entries(ctx, where+` ORDER BY event_id DESC LIMIT ?`, append(args, limit)...)
}

// Show reads one row.
func (o *Outbox) Show(ctx context.Context, id int64) (outbox.Entry, bool, error) {
	found, err := o.entries(ctx, `event_id = ?`, id)
	if err != nil || len(found) == 0 {
		return outbox.Entry{}, false, err
	}
	return found[0], true, nil
}

func (o *Outbox) entries(ctx context.Context, where string, args ...any) ([]outbox.Entry, error) {
	rows, err := queryOutbox[outboxEntryRow](ctx, o, `SELECT `+outboxColumns+`, status, next_retry_time FROM outbox_event WHERE `+where, args...)
	entries := make([]outbox.Entry, len(rows))
	for i, r := range rows {
		entries[i] = r.entry()
	}
	return entries, err
}

// Retry skips rows that a relay is publishing.
func (o *Outbox) Retry(ctx context.Context, ids []int64) (int, error) {
	return o.retryNow(ctx, `event_id IN ? AND (status = ? OR status = ? AND lock_owner IS NULL)`, ids, outboxFailed, outboxPending)
}

// RetryFailed uses the index on the state.
func (o *Outbox) RetryFailed(ctx context.Context) (int, error) {
	return o.retryNow(ctx, `status = ?`, outboxFailed)
}

func (o *Outbox) retryNow(ctx context.Context, where string, args ...any) (int, error) {
	now := o.db.dialect.now
	return o.exec(ctx, `UPDATE outbox_event SET status = ?, retry_count = 0, lock_owner = NULL, next_retry_time = `+now+`,
		updated_at = `+now+` WHERE `+where, append([]any{outboxPending}, args...)...)
}
