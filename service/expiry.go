package service

import (
	"context"
	"time"

	"seckill/service/idgen"
)

// expireBatch is how many orders one transaction closes. It holds the locks of their stock rows for milliseconds.
const expireBatch = 200

// ExpireOrders closes all orders whose time to pay has passed, in batches, and returns how many it closed. Several
// instances may do this at the same time: each order is closed by one of them.
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
			s.cfg.WakeRelay()
		}
		if err != nil || n == 0 { // 0: another instance is closing the same orders
			return closed, err
		}
	}
}

// expire closes a batch. If an order in it cannot be closed, it closes each order separately, so that the others are not
// held up.
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

// RunExpiry calls ExpireOrders every interval until ctx ends. It logs a failure and goes on.
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
