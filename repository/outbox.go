package repository

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"gorm.io/gorm"

	"seckill/service"
	"seckill/service/idgen"
	"seckill/service/outbox"
)

// The states of a row of outbox_event.
const (
	outboxPending = 0
	outboxSent    = 1
	outboxFailed  = 2
)

// Outbox accesses the table outbox_event for the relay, the jobs and the operator. The transactions of the orders append
// its rows (appendEvents).
//
// Every statement commits on its own and locks rows in the order of their primary key, so the claims and marks of any number
// of relays wait for each other without deadlocks. READ COMMITTED keeps them from locking the gaps that inserts need. A
// deadlock with a statement of another kind is retried and costs no attempt.
type Outbox struct {
	db     *DB
	spread atomic.Int32 // how many of the next claims start at a random place, see spreadClaims
}

var _ outbox.Store = (*Outbox)(nil)

// NewOutbox returns the outbox of the database.
func NewOutbox(db *DB) *Outbox { return &Outbox{db: db} }

// A claim that competed with others read rows that it did not get. So the next spreadClaims claims start at a random place
// among the first spreadBatches batches.
const (
	spreadBatches = 8
	spreadClaims  = 32
)

// outboxRow is a row that is about to be published.
type outboxRow struct {
	EventID     int64
	BizType     string
	BizID       int64
	Version     int
	Payload     []byte
	RetryCount  int
	CreatedAt   dbTime
	TraceParent string
}

const outboxColumns = `event_id, biz_type, biz_id, version, payload, retry_count, created_at, trace_parent`

func (r outboxRow) event() outbox.Event {
	return outbox.Event{
		ID: r.EventID, Type: r.BizType, Key: r.BizID, Version: r.Version, Payload: r.Payload, CreatedAt: r.CreatedAt.Time,
		TraceParent: r.TraceParent,
	}
}

// claimToken identifies a claim. It names no owner, since nobody asks whether an owner is alive: the end of the lease
// decides.
func claimToken() string { return rand.Text() }

// Claim reads due rows in the order of the index, without locks, and takes those of them that are still due.
func (o *Outbox) Claim(ctx context.Context, c outbox.Claim) (outbox.Batch, error) {
	rows, err := o.due(ctx, c)
	if err != nil || len(rows) == 0 {
		return outbox.Batch{}, err
	}
	ids := make([]int64, len(rows))
	for i, r := range rows {
		ids[i] = r.EventID
	}
	batch := outbox.Batch{Token: claimToken()}
	taken, err := o.take(ctx, ids, batch.Token, c.Lease)
	if err != nil {
		return outbox.Batch{}, err
	}
	if batch.Contended = taken < len(rows); batch.Contended {
		o.spread.Store(spreadClaims)
		ids, err = queryOutbox[int64](ctx, o, `SELECT event_id FROM outbox_event WHERE event_id IN ? AND lock_owner = ?`, ids, batch.Token)
		if err != nil {
			return outbox.Batch{}, err
		}
		rows = slices.DeleteFunc(rows, func(r outboxRow) bool { return !slices.Contains(ids, r.EventID) })
	}
	for _, r := range rows {
		batch.Events = append(batch.Events, r.event())
		batch.Attempts = append(batch.Attempts, r.RetryCount)
	}
	return batch, nil
}

// due reads the rows to take: the earliest ones, or further ones after a claim that competed with others.
func (o *Outbox) due(ctx context.Context, c outbox.Claim) ([]outboxRow, error) {
	d, narrow := o.db.dialect, ""
	if c.Overdue > 0 || c.MinAttempts > 0 {
		narrow = fmt.Sprintf(" AND (next_retry_time <= %s OR retry_count >= %d)", d.nowPlus(-c.Overdue), c.MinAttempts)
	}
	query := `SELECT ` + outboxColumns + ` FROM outbox_event` + d.useIndex("outbox_due") + `
		WHERE status = ? AND next_retry_time <= ` + d.now + narrow + `
		ORDER BY next_retry_time LIMIT ? OFFSET ?`
	offset := 0
	if o.spread.Load() > 0 && o.spread.Add(-1) >= 0 {
		offset = mathrand.N(spreadBatches) * c.Limit
	}
	rows, err := queryOutbox[outboxRow](ctx, o, query, outboxPending, c.Limit, offset)
	if err == nil && len(rows) == 0 && offset > 0 {
		rows, err = queryOutbox[outboxRow](ctx, o, query, outboxPending, c.Limit, 0)
	}
	return rows, err
}

// take gives the rows that are still due to the token, and returns their number.
func (o *Outbox) take(ctx context.Context, ids []int64, token string, lease time.Duration) (int, error) {
	d := o.db.dialect
	return o.update(ctx, `lock_owner = ?, next_retry_time = `+d.nowPlus(lease),
		`event_id IN ? AND status = ? AND next_retry_time <= `+d.now, token, ids, outboxPending)
}

// MarkSent marks rows as sent, even if another claim holds them.
func (o *Outbox) MarkSent(ctx context.Context, ids []int64) error {
	_, err := o.update(ctx, `status = ?, lock_owner = NULL, next_retry_time = `+o.db.dialect.now,
		`event_id IN ? AND status <> ?`, outboxSent, ids, outboxSent)
	return err
}

// held is the condition for rows that a token still holds.
const held = `event_id IN ? AND lock_owner = ? AND status = ?`

// MarkFailed counts an attempt. Each row has a delay of its own.
func (o *Outbox) MarkFailed(ctx context.Context, token string, failures []outbox.Failure) error {
	var ids, gaveUp []int64
	var delays strings.Builder
	for _, f := range failures {
		ids = append(ids, f.ID)
		if f.GiveUp {
			gaveUp = append(gaveUp, f.ID)
		}
		fmt.Fprintf(&delays, " WHEN %d THEN %d", f.ID, f.Delay.Milliseconds())
	}
	due := o.db.dialect.nowPlusMillis(`(CASE event_id` + delays.String() + ` END)`)
	_, err := o.update(ctx, `status = CASE WHEN event_id IN ? THEN ? ELSE status END, retry_count = retry_count + 1,
		lock_owner = NULL, next_retry_time = `+due, held, gaveUp, outboxFailed, ids, token, outboxPending)
	return err
}

// Release makes rows due now.
func (o *Outbox) Release(ctx context.Context, token string, ids []int64) error {
	_, err := o.update(ctx, `lock_owner = NULL, next_retry_time = `+o.db.dialect.now, held, ids, token, outboxPending)
	return err
}

// Backlog counts in the index alone.
func (o *Outbox) Backlog(ctx context.Context) (outbox.Backlog, error) {
	rows, err := queryOutbox[outbox.Backlog](ctx, o, `SELECT COUNT(CASE status WHEN ? THEN 1 END) AS pending,
		COUNT(CASE status WHEN ? THEN 1 END) AS failed
		FROM outbox_event WHERE status IN (?, ?)`, outboxPending, outboxFailed, outboxPending, outboxFailed)
	if err != nil {
		return outbox.Backlog{}, err
	}
	return rows[0], nil
}

// update changes rows by their primary key and returns their number. args are those of set and of where.
func (o *Outbox) update(ctx context.Context, set, where string, args ...any) (int, error) {
	d := o.db.dialect
	return o.exec(ctx, `UPDATE outbox_event`+d.useIndex("PRIMARY")+` SET `+set+`, updated_at = `+d.now+` WHERE `+where, args...)
}

// exec executes a statement and returns the number of changed rows.
func (o *Outbox) exec(ctx context.Context, query string, args ...any) (n int, err error) {
	err = o.retry(ctx, func(tx *gorm.DB) error {
		result := tx.Exec(query, args...)
		n = int(result.RowsAffected)
		return result.Error
	})
	return n, err
}

// queryOutbox returns the rows of a query.
func queryOutbox[Row any](ctx context.Context, o *Outbox, query string, args ...any) (rows []Row, err error) {
	err = o.retry(ctx, func(tx *gorm.DB) error {
		rows = nil
		return tx.Raw(query, args...).Scan(&rows).Error
	})
	return rows, err
}

// retry runs an idempotent statement until it succeeds, fails permanently, or ctx ends.
func (o *Outbox) retry(ctx context.Context, statement func(tx *gorm.DB) error) error {
	if err := retry(ctx, 0, func() error { return statement(o.db.session(ctx)) }); err != nil {
		return fmt.Errorf("outbox: %w", err)
	}
	return nil
}

// event is a change of an order on its way into the outbox.
type event struct {
	id    idgen.ID
	trace string // the W3C traceparent of the change, "" for none
	service.OrderEvent
}

// appendEvents writes events in the transaction of their changes, and nowhere else.
func appendEvents(tx *gorm.DB, events []event, now time.Time) error {
	insert, args, err := insertEventsSQL(events, now)
	if err != nil {
		return err
	}
	return tx.Exec(insert, args...).Error
}

// insertEventsSQL builds the INSERT of events that are due at once.
func insertEventsSQL(events []event, now time.Time) (sql string, args []any, err error) {
	var at any = now // one allocation for all
	args = make([]any, 0, 9*len(events))
	for _, e := range events {
		payload, err := e.Payload()
		if err != nil {
			return "", nil, err
		}
		args = append(args, int64(e.id), string(e.Type), int64(e.OrderID), e.Version, payload, at, at, at, orNull(e.trace))
	}
	return insertInto("outbox_event", len(events), "event_id", "biz_type", "biz_id", "version", "payload",
		"next_retry_time", "created_at", "updated_at", "trace_parent"), args, nil
}

// orNull is the text, or NULL for "".
func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}
