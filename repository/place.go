package repository

import (
	"context"
	"errors"
	"slices"
	"time"

	"gorm.io/gorm"

	"seckill/service"
	"seckill/service/idgen"
)

// Place implements service.OrderStore.
//
// It works in rounds. If a unique index refuses an order of a transaction, or the terms have changed, the transaction is
// rolled back and all of its orders go to the next round, which first looks up the orders that exist. A round without
// progress is one in which another instance made progress, or one that failed.
func (s *Orders) Place(ctx context.Context, voucherID idgen.ID, batch []*service.Placement) {
	pending, lookUp := batch, false
	for noProgress := 0; len(pending) > 0; {
		left, err := s.placeRound(ctx, voucherID, pending, lookUp)
		noProgress++
		again := ctx.Err() == nil
		switch {
		case err != nil:
			again = classify(err) == transient && backOff(ctx, noProgress)
		case len(left) < len(pending):
			noProgress = 0
		case noProgress > 1: // the first repeat follows at once
			again = backOff(ctx, noProgress)
		}
		if !again {
			refuse(left, notPlaced(errors.Join(err, context.Cause(ctx))))
			return
		}
		pending, lookUp = left, true
	}
}

// notPlaced is the answer to orders that were certainly not placed.
func notPlaced(err error) error {
	if refusal, ok := errors.AsType[*service.Error](err); ok {
		return refusal
	}
	return service.Unavailable(err)
}

func refuse(orders []*service.Placement, err error) {
	for _, p := range orders {
		p.Err = err
	}
}

// placeRound decides what it can and returns the orders that are undecided; they are certainly not placed. With lookUp,
// it looks for existing orders before it inserts any.
func (s *Orders) placeRound(ctx context.Context, voucherID idgen.ID, pending []*service.Placement, lookUp bool) (left []*service.Placement, err error) {
	// 1. The terms, without a lock: the guard in the transaction decides.
	terms, now, err := readTerms(s.db.session(ctx), s.db.dialect, voucherID)
	if err != nil {
		return pending, err
	}
	v := service.Voucher{ID: voucherID, Terms: terms, ServerTime: now}
	refusal := v.CheckOpen(now)
	if refusal == nil && terms.Stock == 0 {
		refusal = service.ErrSoldOut
	}

	// 2. Answers from existing orders. The lookup is needed if an index may have refused an order, if there is no unit for
	//    some of the orders (a repeated request still gets its order), and above a limit of 1, to find a free slot.
	fresh, waiting := pending, []*service.Placement(nil)
	if lookUp || refusal != nil || terms.UserLimit > 1 || terms.Stock < int64(len(pending)) {
		if fresh, waiting, err = s.answerFromExisting(ctx, voucherID, pending, terms.UserLimit, lookUp); err != nil {
			return pending, err
		}
	}
	if refusal != nil {
		refuse(fresh, refusal)
		refuse(waiting, refusal)
		return nil, nil
	}

	// 3. One transaction for as many orders as there are units, first come, first served.
	units := min(int(terms.Stock), len(fresh))
	left, err = s.placeOrSplit(ctx, voucherID, fresh[:units], now)
	return slices.Concat(left, fresh[units:], waiting), err
}

// placeOrSplit places all of the orders in one transaction, or returns them undecided. If the transaction fails for good,
// one of the orders is bad, or they are too many for one packet: placeOrSplit then tries each half alone.
func (s *Orders) placeOrSplit(ctx context.Context, voucherID idgen.ID, orders []*service.Placement, now time.Time) (left []*service.Placement, err error) {
	if len(orders) == 0 {
		return nil, nil
	}
	err = s.placeAll(ctx, voucherID, orders, now)
	switch {
	case err == nil:
		return nil, nil
	case errors.Is(err, errRefusedByIndex), errors.Is(err, errStaleTerms):
		return orders, nil
	case classify(err) == unknown:
		return s.resolveUnknownCommit(ctx, orders, err), nil
	case classify(err) == transient, ctx.Err() != nil:
		return orders, err
	case len(orders) == 1:
		orders[0].Err = &service.Error{Code: service.CodeInternal, Message: "the order could not be written", Err: err}
		return nil, nil
	}
	half := len(orders) / 2
	if left, err = s.placeOrSplit(ctx, voucherID, orders[:half], now); err != nil {
		return slices.Concat(left, orders[half:]), err
	}
	more, err := s.placeOrSplit(ctx, voucherID, orders[half:], now)
	return slices.Concat(left, more), err
}

// resolveUnknownCommit finds out whether the orders of an unconfirmed COMMIT are durable. Its locking read waits for a
// transaction that the server may still be committing: after it, either all of the orders are committed, or none is and
// none ever will be. It returns the orders that are not committed, to be placed again. If the database does not answer
// before ctx ends, their result is ErrUnknown.
func (s *Orders) resolveUnknownCommit(ctx context.Context, orders []*service.Placement, cause error) (unplaced []*service.Placement) {
	s.db.log.WarnContext(ctx, "a COMMIT was not confirmed; looking for its orders", "orders", len(orders), "error", cause)
	for attempt := 0; backOff(ctx, attempt); attempt++ {
		var found int64
		err := s.db.inTx(ctx, func(tx *gorm.DB) error {
			return tx.Raw("SELECT COUNT(*) FROM (SELECT id FROM voucher_order WHERE id IN ?"+s.db.dialect.forShare+") AS found",
				orderIDs(orders)).Scan(&found).Error
		})
		switch {
		case err != nil:
			cause = err
		case found == 0:
			return orders
		default:
			return nil // placed: their Err is nil, and their Order is as it was committed
		}
	}
	refuse(orders, service.Unknown(cause))
	return nil
}

func orderIDs(orders []*service.Placement) []int64 {
	ids := make([]int64, len(orders))
	for i, p := range orders {
		ids[i] = int64(p.Order.ID)
	}
	return ids
}
