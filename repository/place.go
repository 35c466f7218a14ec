package repository

import (
	"context"
	"errors"
	"time"

	"gorm.io/gorm"

	"seckill/service"
	"seckill/service/idgen"
)

// Place implements service.OrderStore.
//
// It works in rounds. A round reads the terms (the first one goes by those that the last commit left, if they promise
// enough), decides what needs no transaction, and commits as many of the others as there are units, in the order in which
// they came. What a unique index refused, and what found no unit although the terms had promised one, is left to the next
// round, which first looks for the orders that stand. Each round places an order, decides one, or has lost against another
// instance that did.
func (s *Orders) Place(ctx context.Context, voucherID idgen.ID, batch []*service.Placement) {
	pending := make([]candidate, len(batch))
	for i, p := range batch {
		pending[i].Placement = p
	}
	r := round{db: s.db, hints: &s.hints, voucherID: voucherID}
	for lost := 0; len(pending) > 0; {
		left, err := r.run(ctx, pending)
		if lost++; err == nil && len(left) < len(pending) {
			lost = 0
		}
		again := ctx.Err() == nil && (err == nil || passing(err))
		if again && (err != nil || lost > 1) { // who lost to another instance once looks again at once
			again = pause(ctx, lost)
		}
		if !again {
			giveUp(left, errors.Join(err, context.Cause(ctx)))
			return
		}
		pending = left
		r.lookFirst = true
	}
}

// candidate is an order without a verdict, and the slot that it will try to take.
type candidate struct {
	*service.Placement
	slot int
}

// giveUp answers orders of which it is certain that they were not placed.
func giveUp(left []candidate, err error) {
	var refusal *service.Error
	if !errors.As(err, &refusal) {
		refusal = service.Unavailable(err)
	}
	refuse(left, refusal)
}

func refuse(cs []candidate, err error) {
	for _, c := range cs {
		c.Err = err
	}
}

// round is one pass over the orders that have no verdict yet.
type round struct {
	db        *DB
	hints     *hints
	voucherID idgen.ID
	lookFirst bool // for orders that stand, before anything is inserted
}

// run decides what it can and returns the orders that are still without a verdict. They certainly do not stand.
func (r *round) run(ctx context.Context, pending []candidate) (left []candidate, err error) {
	if !r.lookFirst {
		if now, ok := r.hints.promises(r.voucherID, len(pending)); ok {
			r.hints.forget(r.voucherID) // until it has come true
			return r.commit(ctx, pending, now)
		}
	}
	terms, now, err := readTerms(r.db.session(ctx), r.db.dialect, r.voucherID)
	if err != nil {
		return pending, err
	}
	v := service.Voucher{ID: r.voucherID, Terms: terms, ServerTime: now}
	refusal := v.Open(now)
	if refusal == nil && terms.Stock == 0 {
		refusal = service.ErrSoldOut
	}
	fresh, deferred := pending, []candidate(nil)
	if r.lookFirst || refusal != nil || terms.UserLimit > 1 || terms.Stock < int64(len(pending)) {
		if fresh, deferred, err = r.decideStanding(ctx, pending, terms.UserLimit); err != nil {
			return pending, err
		}
	}
	if refusal != nil {
		refuse(fresh, refusal)
		refuse(deferred, refusal) // what they waited for was refused as well
		return nil, nil
	}
	units := min(int(terms.Stock), len(fresh))
	left, err = r.commit(ctx, fresh[:units], now)
	return append(append(left, fresh[units:]...), deferred...), err
}

// commit places the orders, all in one transaction if the data allows it. It returns those that are without a verdict
// after that: a unique index refused them, there was no unit, or err kept them from being tried to the end.
func (r *round) commit(ctx context.Context, orders []candidate, now time.Time) (left []candidate, err error) {
	if len(orders) == 0 {
		return nil, nil
	}
	placed, err := r.transact(ctx, orders, now)
	switch {
	case err == nil:
		return without(orders, placed), nil
	case ambiguous(err):
		unplaced := r.settle(ctx, placed, err)
		return append(unplaced, without(orders, placed)...), nil
	case errors.Is(err, errNothingToPlace), errors.Is(err, errNoUnit):
		return orders, nil
	case passing(err), ctx.Err() != nil:
		return orders, err
	case len(orders) == 1:
		orders[0].Err = &service.Error{Code: service.CodeInternal, Message: "the order could not be written", Err: err}
		return nil, nil
	}
	// One of them is bad, or they are too many for one packet: it fails alone.
	half := len(orders) / 2
	if left, err = r.commit(ctx, orders[:half], now); err != nil {
		return append(left, orders[half:]...), err
	}
	more, err := r.commit(ctx, orders[half:], now)
	return append(left, more...), err
}

// transact places the orders, in one message where that works, else statement by statement and without those that an
// index refuses. It returns those that it placed, also with a COMMIT that was not confirmed.
func (r *round) transact(ctx context.Context, orders []candidate, now time.Time) (placed []candidate, err error) {
	makePending(orders, now)
	if r.db.dialect.message && oneStatement {
		if err := r.commitMessage(ctx, orders, now); !errors.Is(err, errNotAsPlanned) {
			return orders, err
		}
	}
	err = r.db.inTx(ctx, func(tx *gorm.DB) (err error) {
		placed, err = r.place(tx, orders, now)
		return err
	})
	return placed, err
}

// without returns those of all that are not among some, which is in the same order.
func without(all, some []candidate) []candidate {
	if len(some) == len(all) {
		return nil
	}
	rest := make([]candidate, 0, len(all)-len(some))
	for _, c := range all {
		if len(some) > 0 && some[0].Placement == c.Placement {
			some = some[1:]
			continue
		}
		rest = append(rest, c)
	}
	return rest
}

// settle finds out what became of orders whose COMMIT was sent and not confirmed. It looks with a locking read, which
// waits for a transaction that the server may still be committing: after it, either all of them stand, or none does and
// none ever will, since nobody is left to commit them. Those that do not stand are returned, to be tried again. If
// the database does not answer before ctx ends, they are answered "unknown".
func (r *round) settle(ctx context.Context, placed []candidate, cause error) (unplaced []candidate) {
	r.db.log.WarnContext(ctx, "a commit was not confirmed; settling it by its order ids", "orders", len(placed), "error", cause)
	for attempt := 0; pause(ctx, attempt); attempt++ {
		var standing int64
		err := r.db.inTx(ctx, func(tx *gorm.DB) error {
			return tx.Raw("SELECT COUNT(*) FROM (SELECT id FROM voucher_order WHERE id IN ?"+r.db.dialect.shared+") AS standing",
				orderIDs(placed)).Scan(&standing).Error
		})
		switch {
		case err != nil:
			cause = err
		case standing == 0:
			return placed
		default:
			return nil // placed: their Err is nil, and their Order is as it was committed
		}
	}
	refuse(placed, service.Unknown(cause))
	return nil
}

func orderIDs(cs []candidate) []int64 {
	ids := make([]int64, len(cs))
	for i, c := range cs {
		ids[i] = int64(c.Order.ID)
	}
	return ids
}
