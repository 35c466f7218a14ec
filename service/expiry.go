package service

import (
	"context"
	"time"

	"seckill/service/idgen"
)

// expireBatch is how many orders one transaction closes: enough to keep up with any sale, few enough to hold the stock
// rows for milliseconds only.
const expireBatch = 200

// ExpireOrders closes every order whose time to pay is over, in batches, and returns how many it closed. Several
// instances may do it at once: each order is closed by one of them.
func (s *Shop) ExpireOrders(ctx context.Context) (int, error) {
	closed := 0
	for {
		ids, err := s.cfg.Orders.Overdue(ctx, expireBatch)
		if err != nil || len(ids) == 0 {
			return closed, err
		}
		eventIDs := make([]idgen.ID, len(ids))
		if err := s.cfg.IDs.NextN(ctx, eventIDs); err != nil {
			return closed, Unavailable(err)
		}
		returned, err := s.expire(ctx, ids, eventIDs)
		n := 0
		for _, units := range returned {
			n += int(units)
		}
		if n > 0 {
			closed += n
			s.cfg.Observer.Expired(n)
			s.cfg.Changed()
		}
		if err != nil || n == 0 { // none: somebody else is at work on the same orders
			return closed, err
		}
	}
}

// expire closes a batch, or, if the data of one of them is bad, each by itself: it must not keep the units of the others.
func (s *Shop) expire(ctx context.Context, ids, eventIDs []idgen.ID) (map[idgen.ID]int64, error) {
	returned, err := s.cfg.Orders.Expire(ctx, ids, eventIDs)
	if CodeOf(err) != CodeInternal || len(ids) == 1 {
		return returned, err
	}
	returned = map[idgen.ID]int64{}
	for i, id := range ids {
		one, err := s.cfg.Orders.Expire(ctx, ids[i:i+1], eventIDs[i:i+1])
		if CodeOf(err) == CodeInternal {
			s.cfg.Log.Error("an unpaid order cannot be closed", "order", id, "error", err)
			continue
		}
		if err != nil {
			return returned, err
		}
		for voucher, units := range one {
			returned[voucher] += units
		}
	}
	return returned, nil
}

// RunExpiry calls ExpireOrders every interval until ctx ends. A failure is logged and tried again at the next turn.
func (s *Shop) RunExpiry(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if _, err := s.ExpireOrders(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("closing unpaid orders failed; trying again", "error", err)
		}
	}
}
