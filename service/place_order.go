package service

import (
	"context"
	"errors"
	"strconv"
	"time"

	"seckill/service/idgen"
	"seckill/service/lock"
)

// PlaceRequest asks for one unit of a voucher.
type PlaceRequest struct {
	VoucherID idgen.ID
	UserID    UserID
	// RequestID is the client's idempotency key, valid by ValidRequestID, or "".
	RequestID string
}

// PlaceOrder places one order, or returns the order that an earlier request with the same id placed; replayed is true
// then. When it returns an order, that order is durable.
//
// It blocks until the order has a result or ctx ends; Config.CommitTimeout bounds the batch, not the wait in the queue. If
// ctx ends before the order was sent to the database, nothing was done; after that, the error is ErrUnknown, and repeating
// the request resolves it. Refusals are *Error.
func (s *Shop) PlaceOrder(ctx context.Context, req PlaceRequest) (order Order, replayed bool, err error) {
	start := time.Now()
	order, replayed, err = s.placeOrder(ctx, req)
	code := CodeOf(err)
	if replayed {
		code = CodeReplayed
	}
	s.cfg.Observer.Answered(code, time.Since(start))
	return order, replayed, err
}

func (s *Shop) placeOrder(ctx context.Context, req PlaceRequest) (order Order, replayed bool, err error) {
	// 1. The voucher, from a cache that is at most Config.VoucherTTL old.
	sale, voucher, err := s.sale(ctx, req.VoucherID)
	if err != nil {
		return Order{}, false, err
	}

	// 2. The gate refuses requests outside of the sale window and, once a voucher was sold out, requests that find no unit.
	//    A user who has an order already gets it here.
	if order, replayed, err := sale.gate(ctx, voucher, req); replayed || err != nil {
		return order, replayed, err
	}

	// 3. The lock keeps a user's repeated requests away from the database. It does not wait, and correctness does not
	//    depend on it: if it is lost before the commit, the database still decides.
	lease, err := s.cfg.Locker.Acquire(ctx, s.lockKey(req), lock.Try())
	if errors.Is(err, lock.ErrHeld) {
		return Order{}, false, ErrInProgress
	}
	if err != nil {
		return Order{}, false, Unavailable(err)
	}
	defer func() { _ = lease.Release(context.WithoutCancel(ctx)) }() // step 6

	// 4. The ids of the order and its event. They stay the same when the commit is repeated.
	var ids [2]idgen.ID
	if err := s.cfg.IDs.NextN(ctx, ids[:]); err != nil {
		return Order{}, false, Unavailable(err)
	}
	requestID := req.RequestID
	if requestID == "" {
		requestID = ids[0].String()
	}
	p := &Placement{
		Order:   Order{ID: ids[0], VoucherID: req.VoucherID, UserID: req.UserID, RequestID: requestID, PriceCents: voucher.PriceCents},
		EventID: ids[1], PayWithin: voucher.PayWithin, TraceParent: TraceParent(ctx),
	}

	// 5. The commit, in one transaction with the other orders that wait for this voucher. It stores the order and its event
	//    and takes the unit, or does nothing.
	if err := s.commits.submit(ctx, sale, p); err != nil {
		return Order{}, false, withRequestID(err, requestID)
	}

	// 6. The deferred Release frees the lock after the commit. Only a caller whose ctx ended frees it earlier: a repeated
	//    request then joins the queue after this order, and finds it.
	return p.Order, p.Replayed, nil
}

// withRequestID adds the id with which the client resolves an unknown outcome.
func withRequestID(err error, requestID string) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || e.Code != CodeUnknown {
		return err
	}
	unknown := *e // the batch shares the original
	unknown.RequestID = requestID
	return &unknown
}

func (s *Shop) lockKey(req PlaceRequest) string {
	key := "lock:voucher:" + req.VoucherID.String()
	if s.cfg.LockScope == LockUser {
		key += ":user:" + strconv.FormatInt(int64(req.UserID), 10)
	}
	return key
}
