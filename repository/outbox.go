package repository

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"gorm.io/gorm"

	"seckill/service/outbox"
)

// The states of a row of outbox_event.
const (
	outboxPending = 0
	outboxSent    = 1
	outboxFailed  = 2
)

// Outbox is the relay's side of the table outbox_event. Rows are appended by the transactions of the orders.
//
// Every statement commits by itself and locks rows in the order of their primary key, so that claims and marks of any
// number of relays wait for each other but never in a circle; that they also don't meet the gaps that inserts go to is
// READ COMMITTED's doing. A deadlock with somebody else's statement is tried again and costs no attempt.
type Outbox struct {
	db     *DB
	spread atomic.Int32 // claims that still keep away from where others claim
}

var _ outbox.Store = (*Outbox)(nil)

// NewOutbox returns the outbox of the database.
func NewOutbox(db *DB) *Outbox { return &Outbox{db: db} }

// A claim that met others took what they left, after reading what they took. So the next claimApart ones look up to
// claimSpread batches further on.
const (
	claimSpread = 8
	claimApart  = 32
)

// outboxRow is what a claim reads.
type outboxRow struct {
	EventID    int64
	BizType    string
	BizID      int64
	Version    int
	Payload    []byte
	RetryCount int
	CreatedAt  dbTime

	TraceParent string
}

// Claim reads due rows in the order of the index, without locks, and takes those of them that are still due.
func (o *Outbox) Claim(ctx context.Context, c outbox.Claim) (outbox.Batch, error) {
	rows, err := o.due(ctx, c)
	if err != nil || len(rows) == 0 {
		return outbox.Batch{}, err
	}
	token := claimToken()
	taken, err := o.take(ctx, ids(rows), token, c.Lease)
	if err != nil {
		return outbox.Batch{}, err
	}
	contended := int(taken) < len(rows)
	if contended {
		o.spread.Store(claimApart)
		if rows, err = o.held(ctx, rows, token); err != nil {
			return outbox.Batch{}, err
		}
	}
	return newBatch(token, rows, contended), nil
}

// due reads the rows to take: the earliest ones, or, after a claim that met others, a window further on.
func (o *Outbox) due(ctx context.Context, c outbox.Claim) ([]outboxRow, error) {
	offset := 0
	if o.spread.Load() > 0 && o.spread.Add(-1) >= 0 {
		offset = rand.N(claimSpread) * c.Limit
	}
	rows, err := o.dueFrom(ctx, c, offset)
	if err == nil && len(rows) == 0 && offset > 0 {
		rows, err = o.dueFrom(ctx, c, 0)
	}
	return rows, err
}

func (o *Outbox) dueFrom(ctx context.Context, c outbox.Claim, offset int) (rows []outboxRow, err error) {
	d := o.db.dialect
	only := ""
	if c.Overdue > 0 || c.MinAttempts > 0 {
		only = fmt.Sprintf(" AND (next_retry_time <= %s OR retry_count >= %d)", d.nowPlus(-c.Overdue), c.MinAttempts)
	}
	query := `SELECT event_id, biz_type, biz_id, version, payload, retry_count, created_at, trace_parent
		FROM outbox_event ` + d.useIndex("outbox_due") + `
		WHERE status = ? AND next_retry_time <= ` + d.now + only + `
		ORDER BY next_retry_time LIMIT ? OFFSET ?`
	err = o.try(ctx, func(tx *gorm.DB) error {
		rows = rows[:0]
		return tx.Raw(query, outboxPending, c.Limit, offset).Scan(&rows).Error
	})
	return rows, err
}

// take makes the rows the token's, as far as they are still due, and returns how many that were.
func (o *Outbox) take(ctx context.Context, ids []int64, token string, lease time.Duration) (taken int64, err error) {
	d := o.db.dialect
	query := `UPDATE outbox_event ` + d.useIndex("PRIMARY") + `
		SET lock_owner = ?, next_retry_time = ` + d.nowPlus(lease) + `, updated_at = ` + d.now + `
		WHERE event_id IN ? AND status = ? AND next_retry_time <= ` + d.now
	err = o.try(ctx, func(tx *gorm.DB) error {
		result := tx.Exec(query, token, ids, outboxPending)
		taken = result.RowsAffected
		return result.Error
	})
	return taken, err
}

// held returns those of the rows that the token has.
func (o *Outbox) held(ctx context.Context, rows []outboxRow, token string) ([]outboxRow, error) {
	var mine []int64
	err := o.try(ctx, func(tx *gorm.DB) error {
		mine = mine[:0]
		return tx.Raw(`SELECT event_id FROM outbox_event WHERE event_id IN ? AND lock_owner = ?`, ids(rows), token).Scan(&mine).Error
	})
	return slices.DeleteFunc(rows, func(r outboxRow) bool { return !slices.Contains(mine, r.EventID) }), err
}

// Sent marks rows as sent, whoever holds them.
func (o *Outbox) Sent(ctx context.Context, ids []int64) error {
	d := o.db.dialect
	return o.exec(ctx, `UPDATE outbox_event `+d.useIndex("PRIMARY")+`
		SET status = ?, next_retry_time = `+d.now+`, lock_owner = NULL, updated_at = `+d.now+`
		WHERE event_id IN ? AND status <> ?`, outboxSent, ids, outboxSent)
}

// Failed counts an attempt.
func (o *Outbox) Failed(ctx context.Context, token string, failures []outbox.Failure) error {
	d := o.db.dialect
	var again, gaveUp []int64
	delays := strings.Builder{} // CASE event_id WHEN id THEN delay …
	for _, f := range failures {
		if f.GiveUp {
			gaveUp = append(gaveUp, f.ID)
			continue
		}
		again = append(again, f.ID)
		fmt.Fprintf(&delays, " WHEN %d THEN %d", f.ID, f.Delay.Milliseconds())
	}
	const where = ` WHERE event_id IN ? AND lock_owner = ? AND status = ?`
	if len(again) > 0 {
		err := o.exec(ctx, `UPDATE outbox_event `+d.useIndex("PRIMARY")+`
			SET retry_count = retry_count + 1, next_retry_time = `+d.nowPlusMillis(`(CASE event_id`+delays.String()+` END)`)+`,
			lock_owner = NULL, updated_at = `+d.now+where, again, token, outboxPending)
		if err != nil {
			return err
		}
	}
	if len(gaveUp) == 0 {
		return nil
	}
	return o.exec(ctx, `UPDATE outbox_event `+d.useIndex("PRIMARY")+`
		SET retry_count = retry_count + 1, status = ?, next_retry_time = `+d.now+`, lock_owner = NULL, updated_at = `+d.now+
		where, outboxFailed, gaveUp, token, outboxPending)
}

// Release makes rows due now.
func (o *Outbox) Release(ctx context.Context, token string, ids []int64) error {
	d := o.db.dialect
	return o.exec(ctx, `UPDATE outbox_event `+d.useIndex("PRIMARY")+`
		SET next_retry_time = `+d.now+`, lock_owner = NULL, updated_at = `+d.now+`
		WHERE event_id IN ? AND lock_owner = ? AND status = ?`, ids, token, outboxPending)
}

// Backlog counts in the index alone.
func (o *Outbox) Backlog(ctx context.Context) (b outbox.Backlog, err error) {
	var counts []struct {
		Status int
		N      int64
	}
	err = o.try(ctx, func(tx *gorm.DB) error {
		counts = counts[:0]
		return tx.Raw(`SELECT status, COUNT(*) AS n FROM outbox_event WHERE status IN (?, ?) GROUP BY status`,
			outboxPending, outboxFailed).Scan(&counts).Error
	})
	for _, c := range counts {
		if c.Status == outboxPending {
			b.Pending = c.N
		} else {
			b.Failed = c.N
		}
	}
	return b, err
}
