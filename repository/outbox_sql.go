package repository

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"time"

	"gorm.io/gorm"

	"seckill/service/outbox"
)

// claimToken names a claim. It tells nothing of its owner, since nobody may act on that: an owner is dead when its
// lease is over.
func claimToken() string { return rand.Text() }

func ids(rows []outboxRow) []int64 {
	ids := make([]int64, len(rows))
	for i, r := range rows {
		ids[i] = r.EventID
	}
	return ids
}

func newBatch(token string, rows []outboxRow, contended bool) outbox.Batch {
	b := outbox.Batch{Token: token, Contended: contended}
	for _, r := range rows {
		b.Events = append(b.Events, r.event())
		b.Attempts = append(b.Attempts, r.RetryCount)
	}
	return b
}

func (r outboxRow) event() outbox.Event {
	return outbox.Event{
		ID: r.EventID, Type: r.BizType, Key: r.BizID, Version: r.Version, Payload: r.Payload, CreatedAt: r.CreatedAt.Time,
		TraceParent: r.TraceParent,
	}
}

// try runs a statement that may be repeated until it is through, or fails for good, or ctx ends.
func (o *Outbox) try(ctx context.Context, statement func(tx *gorm.DB) error) error {
	for attempt := 0; ; attempt++ {
		err := statement(o.db.session(ctx))
		if err == nil {
			return nil
		}
		if !passing(err) || !pause(ctx, attempt) {
			return fmt.Errorf("outbox: %w", err)
		}
	}
}

func (o *Outbox) exec(ctx context.Context, query string, args ...any) error {
	return o.try(ctx, func(tx *gorm.DB) error { return tx.Exec(query, args...).Error })
}

// nowPlus is the time of the statement plus a duration, which may be negative.
func (d dialect) nowPlus(t time.Duration) string {
	return d.nowPlusMillis(strconv.FormatInt(t.Milliseconds(), 10))
}

// nowPlusMillis is the time of the statement plus a number of milliseconds that an expression gives.
func (d dialect) nowPlusMillis(expression string) string {
	if d.name == sqliteDialect.name {
		return d.now + " + " + expression
	}
	return d.now + " + INTERVAL " + expression + " * 1000 MICROSECOND"
}

// useIndex pins the index that a statement goes by, where the server would decide anew by its statistics, which lag
// behind a table whose rows come and go. A mark that scanned instead would lock the rows of others.
func (d dialect) useIndex(name string) string {
	if d.name == sqliteDialect.name {
		return ""
	}
	return "FORCE INDEX (" + name + ")"
}

// millisSince is the number of milliseconds from a time that an expression gives to that of the statement.
func (d dialect) millisSince(expression string) string {
	if d.name == sqliteDialect.name {
		return d.now + " - " + expression
	}
	return "TIMESTAMPDIFF(MICROSECOND, " + expression + ", " + d.now + ") DIV 1000"
}

// onConflict ends an INSERT that changes the row which its key finds there already.
func (d dialect) onConflict(key, set string) string {
	if d.name == sqliteDialect.name {
		return "ON CONFLICT (" + key + ") DO UPDATE SET " + set
	}
	return "ON DUPLICATE KEY UPDATE " + set
}

// greatest names the function that returns the greater of two values.
func (d dialect) greatest() string {
	if d.name == sqliteDialect.name {
		return "MAX"
	}
	return "GREATEST"
}
