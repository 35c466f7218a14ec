package shop

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"seckill/service/idgen"
)

// Stats is how far a sale's orders have come since this instance started.
type Stats struct {
	Voucher      idgen.ID `json:"voucher_id"`
	Acknowledged int64    `json:"acknowledged"` // answered 201
	Durable      int64    `json:"durable"`      // rows that this instance has committed to MySQL
	Refused      int64    `json:"refused"`      // taken from the stream, and refused by MySQL for good
	Waiting      int64    `json:"waiting"`      // of the acknowledged, those in Redis only when the last was answered
	Backlog      int64    `json:"backlog"`      // entries in the stream now, of all sales

	AcknowledgedPerSecond float64 `json:"acknowledged_per_second"` // from the first to the last answer
	DurablePerSecond      float64 `json:"durable_per_second"`      // from the first answer to the last commit
	// DrainSeconds is how long after the last answer the last commit was.
	DrainSeconds float64 `json:"drain_seconds"`
}

// Stats returns the sales of this instance, in no order.
func (s *Shop) Stats(ctx context.Context) ([]Stats, error) {
	backlog, err := s.redis.XLen(ctx, stream).Result()
	if err != nil {
		return nil, err
	}
	var all []Stats
	s.sales.Range(func(_, value any) bool {
		stats := value.(*sale).stats()
		stats.Backlog = backlog
		all = append(all, stats)
		return true
	})
	return all, nil
}

func (s *sale) stats() Stats {
	stats := Stats{
		Voucher: s.voucher.ID, Acknowledged: s.acknowledged.Load(), Durable: s.durable.Load(), Refused: s.refused.Load(),
		Waiting: s.waiting.Load(),
	}
	first, last, durable := s.firstAck.Load(), s.lastAck.Load(), s.lastDurable.Load()
	stats.AcknowledgedPerSecond = perSecond(stats.Acknowledged, last-first)
	stats.DurablePerSecond = perSecond(stats.Durable, durable-first)
	stats.DrainSeconds = max(0, time.Duration(durable-last).Seconds())
	return stats
}

func perSecond(n, nanos int64) float64 {
	if nanos <= 0 {
		return 0
	}
	return float64(n) / time.Duration(nanos).Seconds()
}

// ServeHTTP answers GET /stats.
func (s *Shop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/stats" {
		http.NotFound(w, r)
		return
	}
	stats, err := s.Stats(r.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(stats) // fails only if the client is gone
}
