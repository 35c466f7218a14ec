package board

import (
	"fmt"
	"maps"
	"math"

	dto "github.com/prometheus/client_model/go"

	"seckill/service"
)

// figures are the numbers of the board by name. -1 means unknown.
type figures map[string]int64

// counters are the figures that only grow, each with the samples of metrics that it is the sum of.
var counters = map[string][]string{
	// Requests to place an order, by answer.
	"placed":          answersWith(service.CodePlaced),
	"replayed":        answersWith(service.CodeReplayed),
	"sold_out":        answersWith(service.CodeSoldOut),
	"already_ordered": answersWith(service.CodeAlreadyOrdered),
	"in_progress":     answersWith(service.CodeInProgress),
	"outside":         answersWith(service.CodeNotStarted, service.CodeEnded),
	"mistaken":        answersWith(service.CodeInvalid, service.CodeNotFound, service.CodeKeyReused),
	"busy":            answersWith(service.CodeBusy),
	"unavailable":     answersWith(service.CodeUnavailable),
	"unknown":         answersWith(service.CodeUnknown),
	"internal":        answersWith(service.CodeInternal),

	// What happens behind them.
	"commits":         {`seckill_commit_batch_orders_count`},
	"committed":       {`seckill_commit_batch_orders_sum`},
	"expired":         {`seckill_orders_expired_total`},
	"lock_granted":    {`seckill_locks_total{outcome="granted"}`},
	"lock_held":       {`seckill_locks_total{outcome="held"}`},
	"lock_bypassed":   {`seckill_locks_total{outcome="bypassed"}`},
	"lock_lost":       {`seckill_locks_total{outcome="lost"}`},
	"lock_failed":     {`seckill_locks_total{outcome="failed"}`, `seckill_locks_total{outcome="cancelled"}`},
	"sent":            {`seckill_outbox_events_total{outcome="sent"}`},
	"unsent":          {`seckill_outbox_events_total{outcome="unknown"}`, `seckill_outbox_events_total{outcome="away"}`},
	"given_up":        {`seckill_outbox_events_total{outcome="refused"}`},
	"leases":          {`seckill_ids_events_total{event="lease-acquired"}`},
	"leases_lost":     {`seckill_ids_events_total{event="lease-lost"}`},
	"worker_switches": {`seckill_ids_events_total{event="worker-switched"}`},
	"clock_steps":     {`seckill_ids_events_total{event="clock-wait"}`, `seckill_ids_events_total{event="clock-ahead"}`},
}

// answers are the counters of requests to place an order.
var answers = []string{
	"placed", "replayed", "sold_out", "already_ordered", "in_progress", "outside", "mistaken", "busy", "unavailable", "unknown", "internal",
}

// answersWith returns the samples that count requests to place an order with these outcomes.
func answersWith(codes ...service.Code) (samples []string) {
	for _, code := range codes {
		samples = append(samples, fmt.Sprintf("seckill_orders_total{outcome=%q}", code))
	}
	return samples
}

// gauges are the figures that a metric has at the moment. The figure is the metric times its factor.
var gauges = map[string]struct {
	sample string
	factor float64
}{
	"queue":         {`seckill_commit_waiting_orders`, 1},
	"outbox":        {`seckill_outbox_events{state="pending"}`, 1},
	"outbox_failed": {`seckill_outbox_events{state="failed"}`, 1},
	"outbox_oldest": {`seckill_outbox_oldest_seconds`, 1000}, // milliseconds
	"worker":        {`seckill_ids_worker`, 1},               // -1: ids are not snowflakes
	"backup":        {`seckill_ids_second_worker`, 1},        // 1: the second worker of the pair is in use
	"ahead":         {`seckill_ids_ahead_seconds`, 1000},     // milliseconds
	"lease":         {`seckill_ids_lease_left_seconds`, 1},
	"clock_step":    {`seckill_ids_clock_step_seconds`, 1000}, // milliseconds
	"ids_left":      {`seckill_ids_segment_remaining`, 1},     // -1: ids are snowflakes
	"ids_away":      {`seckill_ids_store_away`, 1},
	"lock_open":     {`seckill_breaker_open{breaker="lock"}`, 1}, // 1: orders bypass the lock
	"broker_away":   {`seckill_breaker_open{breaker="broker"}`, 1},
}

// readFigures computes the figures that come straight from metrics.
func readFigures(families []*dto.MetricFamily) figures {
	values := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			addSamples(values, family.GetName(), m)
		}
	}
	f := figures{}
	for name, samples := range counters {
		for _, sample := range samples {
			f[name] += int64(values[sample])
		}
	}
	for name, gauge := range gauges {
		f[name] = -1
		if value, known := values[gauge.sample]; known {
			f[name] = int64(math.Round(value * gauge.factor))
		}
	}
	return f
}

// addSamples names a metric's samples as a scrape does.
func addSamples(values map[string]float64, name string, m *dto.Metric) {
	if labels := m.GetLabel(); len(labels) == 1 { // no figure comes from a metric with more
		name = fmt.Sprintf("%s{%s=%q}", name, labels[0].GetName(), labels[0].GetValue())
	}
	switch {
	case m.Counter != nil:
		values[name] = m.Counter.GetValue()
	case m.Gauge != nil:
		values[name] = m.Gauge.GetValue()
	case m.Histogram != nil:
		values[name+"_count"] = float64(m.Histogram.GetSampleCount())
		values[name+"_sum"] = m.Histogram.GetSampleSum()
	}
}

// changedSince returns the figures that are not as they were before.
func (f figures) changedSince(before figures) figures {
	changed := maps.Clone(f)
	maps.DeleteFunc(changed, func(name string, value int64) bool {
		was, known := before[name]
		return known && was == value
	})
	return changed
}

// answered is the number of requests to place an order that were answered.
func (f figures) answered() (sum int64) {
	for _, name := range answers {
		sum += f[name]
	}
	return sum
}

// history holds the figures of the last minutes, for the charts of a new viewer.
type history struct {
	// columns have a value per row: "t" the time, a gauge what it was, a counter by how much it grew since the row before.
	columns map[string][]int64
	lastRow figures
	dueAt   int64 // when the next row is due, in milliseconds of the board
}

const (
	historyStep = 500 // milliseconds
	historyRows = 300 // 2.5 minutes
)

// add appends a row when one is due.
func (h *history) add(at int64, now figures) {
	if at < h.dueAt {
		return
	}
	h.dueAt = at - at%historyStep + historyStep
	if h.columns == nil {
		h.columns = map[string][]int64{}
	}
	h.append("t", at)
	for name, value := range now {
		if counters[name] != nil {
			value -= h.lastRow[name]
		}
		h.append(name, value)
	}
	h.lastRow = now
}

func (h *history) append(name string, value int64) {
	column := append(h.columns[name], value)
	h.columns[name] = column[max(0, len(column)-historyRows):]
}
