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
	// RequestID is the client's idempotency key, valid by ValidRequestID. "" stands for a request that has none.
	RequestID string
}

// PlaceOrder places one order, or finds the one that an earlier request with the same id placed (replayed is true
// then). When it returns an order, that order is durable.
//
// It blocks for the commit, at most as long as Config.CommitTimeout, or until ctx ends. A ctx that ends before the
// order was sent to the database costs nothing; after that the error is ErrUnknown, and the same request again settles
// it. Refusals are *Error with the codes of the API.
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
	// 1. The voucher, from a cache that is a second old at most. Outside of the window nobody gets further, except a
	//    buyer who asks again after the end and is told what stands.
	sale, voucher, err := s.sale(ctx, req.VoucherID)
	if err != nil {
		return Order{}, false, err
	}

	// 2. The gate: once a voucher was seen to be sold out, its refusals share one read of the stock row, so that they
	//    cost next to nothing and are never older than the request that they answer.
	if answered, order, err := sale.gate(ctx, voucher, req); answered {
		return order, err == nil, err
	}

	// 3. The lock keeps a user's impatient repeats away from the database. It does not wait, and nothing relies on it:
	//    if it is lost while the order is on its way, the conditions of step 5 decide all the same.
	lease, err := s.cfg.Locker.Acquire(ctx, s.lockKey(req), lock.Try())
	if err != nil {
		return Order{}, false, lockRefusal(err)
	}
	// 6. (The release comes after the commit, also of a commit that failed, on a context of its own. Only a caller who
	//    leaves while the commit is on its way releases before it: a repeat then queues up behind it and finds its order.)
	defer func() { _ = lease.Release(context.WithoutCancel(ctx)) }()

	// 4. The order's id, and that of its event. They stay the same however often the commit has to be repeated.
	p := &Placement{
		Order:     Order{VoucherID: req.VoucherID, UserID: req.UserID, RequestID: req.RequestID, PriceCents: voucher.PriceCents},
		PayWithin: voucher.PayWithin, TraceParent: TraceParent(ctx),
	}
	var ids [2]idgen.ID
	if err := s.cfg.IDs.NextN(ctx, ids[:]); err != nil {
		return Order{}, false, Unavailable(err)
	}
	p.Order.ID, p.EventID = ids[0], ids[1]
	if p.Order.RequestID == "" {
		p.Order.RequestID = p.Order.ID.String()
	}

	// 5. The commit, together with whatever else waits for this voucher. Order and event stand, and the unit is taken,
	//    or nothing is.
	return s.commit(ctx, sale, p)
}

// commit hands the placement over and explains its verdict.
func (s *Shop) commit(ctx context.Context, sale *sale, p *Placement) (Order, bool, error) {
	requestID := p.Order.RequestID
	if err := s.commits.commit(ctx, sale, p); err != nil {
		if e, ok := errors.AsType[*Error](err); ok && e.Code == CodeUnknown {
			unknown := *e
			unknown.RequestID = requestID
			return Order{}, false, &unknown
		}
		return Order{}, false, err
	}
	return p.Order, p.Replayed, nil
}

func (s *Shop) lockKey(req PlaceRequest) string {
	b := make([]byte, 0, 64)
	b = append(b, "lock:voucher:"...)
	b = strconv.AppendInt(b, int64(req.VoucherID), 10)
	if s.cfg.LockScope == LockUser {
		b = append(b, ":user:"...)
		b = strconv.AppendInt(b, int64(req.UserID), 10)
	}
	return string(b)
}

// lockRefusal explains why the lock was not granted. Where the shop may go on without its lock service, the Locker is
// wrapped in lock.Bypass and ErrUnavailable does not come here.
func lockRefusal(err error) error {
	switch {
	case errors.Is(err, lock.ErrHeld):
		return ErrInProgress
	default:
		return Unavailable(err)
	}
}
