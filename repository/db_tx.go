package repository

import (
	"context"
	"errors"
	"fmt"

	"gorm.io/gorm"

	"seckill/service"
)

// inTx runs fn in a transaction and commits it if fn returns nil. An error that wraps errUnconfirmed leaves the outcome
// open; after any other error nothing was done.
func (db *DB) inTx(ctx context.Context, fn func(tx *gorm.DB) error) error {
	tx := db.session(ctx).Begin()
	if tx.Error != nil {
		return tx.Error
	}
	done := false
	defer func() {
		if !done { // also when fn panics
			tx.Rollback()
		}
	}()
	if err := fn(tx); err != nil {
		return err
	}
	done = true
	return commitTx(ctx, tx)
}

// commitTx waits for the answer to COMMIT until ctx ends. database/sql would ignore ctx and wait as long as the connection
// allows; it still does so in the background.
func commitTx(ctx context.Context, tx *gorm.DB) error {
	answer := make(chan error, 1)
	go func() { answer <- tx.Commit().Error }()
	var err error
	select {
	case err = <-answer:
	case <-ctx.Done():
		select {
		case err = <-answer: // both at the same moment
		default:
			err = context.Cause(ctx)
		}
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errUnconfirmed, err)
	}
	return nil
}

// inTxUntilKnown runs an idempotent transaction until its outcome is known. It repeats the transaction after a transient
// failure, and after a COMMIT that was not confirmed. If ctx ends first, the error is ErrUnknown, or ErrUnavailable if certainly nothing
// was done. A *service.Error from fn is an outcome: the transaction is rolled back and the error returned.
func (db *DB) inTxUntilKnown(ctx context.Context, fn func(tx *gorm.DB) error) error {
	mayBeCommitted := false
	err := retry(ctx, 0, func() error {
		began := false
		err := db.inTx(ctx, func(tx *gorm.DB) error {
			began = true
			return fn(tx)
		})
		mayBeCommitted = mayBeCommitted || classify(err) == unknown || began && ctx.Err() != nil
		return err
	})
	if _, refusal := errors.AsType[*service.Error](err); err != nil && mayBeCommitted && !refusal {
		return service.Unknown(err)
	}
	return toServiceError(ctx, err)
}

// read runs a query. It repeats the query once after a transient error, such as a lost connection.
func (db *DB) read(ctx context.Context, fn func(tx *gorm.DB) error) error {
	return toServiceError(ctx, retry(ctx, 2, func() error { return fn(db.session(ctx)) }))
}

// toServiceError translates an error of the database into one of the service, where there is one.
func toServiceError(ctx context.Context, err error) error {
	_, refusal := errors.AsType[*service.Error](err)
	switch {
	case err == nil, refusal:
		return err
	case errors.Is(err, gorm.ErrRecordNotFound):
		return service.ErrNotFound
	case classify(err) == transient, ctx.Err() != nil:
		return service.Unavailable(err)
	}
	return err
}
