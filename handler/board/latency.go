package board

import (
	"maps"
	"math"
	"slices"

	dto "github.com/prometheus/client_model/go"

	"seckill/service"
)

// latencies computes percentiles of the time to answer, over the last two seconds, from the buckets of
// seckill_order_duration_seconds.
type latencies struct{ readings []reading } // oldest first

// reading is what the histograms had counted at a moment: of requests that got an order (placed or replayed), and of all others.
type reading struct {
	at                int64 // milliseconds of the board
	accepted, refused buckets
}

// latencyWindow is the time that percentiles are over, in milliseconds.
const latencyWindow = 2000

// measure adds the percentiles to the figures, in microseconds; -1 if nothing was answered.
func (l *latencies) measure(at int64, families []*dto.MetricFamily, f figures) {
	now := reading{at, buckets{}, buckets{}}
	for _, family := range families {
		if family.GetName() != "seckill_order_duration_seconds" {
			continue
		}
		for _, m := range family.GetMetric() {
			switch m.GetLabel()[0].GetValue() {
			case string(service.CodePlaced), string(service.CodeReplayed):
				now.accepted.add(m.GetHistogram())
			default:
				now.refused.add(m.GetHistogram())
			}
		}
	}
	l.readings = append(l.readings, now)
	for len(l.readings) > 1 && l.readings[1].at <= at-latencyWindow {
		l.readings = l.readings[1:]
	}
	before := l.readings[0]
	f["p50"] = now.accepted.percentile(before.accepted, 0.5)
	f["p90"] = now.accepted.percentile(before.accepted, 0.9)
	f["p99"] = now.accepted.percentile(before.accepted, 0.99)
	f["refused_p99"] = now.refused.percentile(before.refused, 0.99)
}

// buckets count observations by the upper bound of their bucket in seconds. The bounds are those of Prometheus's native
// histograms: each is a power of 2^(2^-schema).
type buckets map[float64]int64

// add adds the counts of a histogram, which are delta-encoded in spans of consecutive buckets.
func (b buckets) add(h *dto.Histogram) {
	base := math.Exp2(math.Exp2(-float64(h.GetSchema())))
	deltas := h.GetPositiveDelta()
	index, count := int32(0), int64(0)
	for _, span := range h.GetPositiveSpan() {
		index += span.GetOffset()
		for range span.GetLength() {
			count += deltas[0]
			deltas = deltas[1:]
			b[math.Pow(base, float64(index))] += count
			index++
		}
	}
}

// percentile returns the upper bound of the bucket in which a share of the observations since before is reached, in
// microseconds; -1 if there were none.
func (b buckets) percentile(before buckets, share float64) int64 {
	total := int64(0)
	for bound, count := range b {
		total += count - before[bound]
	}
	seen := int64(0)
	for _, bound := range slices.Sorted(maps.Keys(b)) {
		seen += b[bound] - before[bound]
		if seen > 0 && float64(seen) >= share*float64(total) {
			return int64(math.Ceil(bound * 1e6))
		}
	}
	return -1
}
