package shop

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"seckill/service"
	"seckill/service/idgen"
)

// Audit waits until the stream is empty, or fails when ctx ends, and checks the sales of this instance then. So it says
// what came of the orders, not that they were safe when they were acknowledged.
func (s *Shop) Audit(ctx context.Context) (service.Audit, error) {
	if err := s.Drain(ctx); err != nil {
		return service.Audit{}, err
	}
	v := service.Audit{OK: true, At: time.Now()}
	add := func(id string, invariant int, check string, broken int64) {
		v.Findings = append(v.Findings, service.Finding{ID: id, Invariant: invariant, Check: check, OK: broken == 0, Broken: broken})
		v.OK = v.OK && broken == 0
	}
	stock, err := s.count(ctx, "luastream_voucher v WHERE stock < 0 OR total <> stock + "+
		"(SELECT COUNT(*) FROM luastream_order o WHERE o.voucher_id = v.id)")
	if err != nil {
		return v, err
	}
	add("stock-balance", 1, "total = stock + orders", stock)
	drift, lost, err := s.compareCounters(ctx)
	if err != nil {
		return v, err
	}
	add("stock-drift", 1, "Redis and MySQL count the same units", drift)
	add("order-lost", 4, "orders acknowledged by this instance are in MySQL", lost)
	return v, nil
}

func (s *Shop) count(ctx context.Context, from string, args ...any) (n int64, err error) {
	err = s.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+from, args...).Scan(&n)
	return n, err
}

// compareCounters returns how many sales have different stocks in the two stores, and how many orders are missing.
func (s *Shop) compareCounters(ctx context.Context) (drift, lost int64, err error) {
	s.sales.Range(func(_, value any) bool {
		sale := value.(*sale)
		var inRedis, inMySQL service.Voucher
		if inRedis, err = s.Voucher(ctx, sale.voucher.ID); err != nil {
			return false
		}
		if inMySQL, err = readVoucher(ctx, s.db, sale.voucher.ID); err != nil {
			return false
		}
		if inRedis.Stock != inMySQL.Stock {
			drift++
		}
		var orders int64
		orders, err = s.count(ctx, "luastream_order WHERE voucher_id = ?", sale.voucher.ID)
		lost += max(sale.refused.Load(), sale.acknowledged.Load()-orders)
		return err == nil
	})
	return drift, lost, err
}

// Drain waits until the stream is empty.
func (s *Shop) Drain(ctx context.Context) error {
	for {
		backlog, err := s.redis.XLen(ctx, stream).Result()
		switch {
		case err != nil:
			return service.Unavailable(err)
		case backlog == 0:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("%d orders are still waiting: %w", backlog, context.Cause(ctx))
		}
		pause(ctx, 10*time.Millisecond)
	}
}

// Stats is how far a sale's orders have come since this instance started.
type Stats struct {
	Voucher      idgen.ID `json:"voucher_id"`
	Acknowledged int64    `json:"acknowledged"` // answered 201
	Durable      int64    `json:"durable"`      // rows that this instance has committed to MySQL
	Refused      int64    `json:"refused"`      // taken from the stream, and refused by MySQL for good
	Waiting      int64    `json:"waiting"`      // of the acknowledged, those in Redis only when the last was answered

	DurablePerSecond float64 `json:"durable_per_second"` // from the first answer to the last commit
	DrainSeconds     float64 `json:"drain_seconds"`      // from the last answer to the last commit
}

// Stats returns the sales of this instance, in no order.
func (s *Shop) Stats() (all []Stats) {
	s.sales.Range(func(_, value any) bool {
		all = append(all, value.(*sale).stats())
		return true
	})
	return all
}

func (s *sale) stats() Stats {
	stats := Stats{
		Voucher: s.voucher.ID, Acknowledged: s.acknowledged.Load(), Durable: s.durable.Load(), Refused: s.refused.Load(),
		Waiting: s.waiting.Load(),
	}
	first, last, durable := s.firstAck.Load(), s.lastAck.Load(), s.lastDurable.Load()
	if durable > first {
		stats.DurablePerSecond = float64(stats.Durable) / time.Duration(durable-first).Seconds()
	}
	stats.DrainSeconds = max(0, time.Duration(durable-last).Seconds())
	return stats
}

// ServeHTTP answers GET /stats.
func (s *Shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/stats" {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s.Stats()) // fails only if the client is gone
}
