package repository

import (
	"context"
	"crypto/rand"
	"fmt"

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

// try runs an idempotent statement until it succeeds, fails permanently, or ctx ends.
func (o *Outbox) try(ctx context.Context, statement func(tx *gorm.DB) error) error {
	err := retry(ctx, 0, func() error { return statement(o.db.session(ctx)) })
	if err != nil {
		return fmt.Errorf("outbox: %w", err)
	}
	return nil
}

func (o *Outbox) exec(ctx context.Context, query string, args ...any) error {
	return o.try(ctx, func(tx *gorm.DB) error { return tx.Exec(query, args...).Error })
}
