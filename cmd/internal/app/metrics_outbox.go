package app

import (
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/service/outbox"
)

// relayMetrics are those of the way of events to the broker.
type relayMetrics struct {
	sent, refused, unknown, away prometheus.Counter // events that a batch handed to the broker

	batch   prometheus.Observer
	seconds prometheus.Observer
	age     prometheus.Observer
	faults  prometheus.Counter

	pending, stale, failed, oldest prometheus.Gauge // as seen last
}

func newRelayMetrics(f maker) relayMetrics {
	events := f.counter("outbox_events_total", "Events handed to the broker, by outcome.", "outcome")
	backlog := f.gauge("outbox_events", "Events that are not sent, in all of the shop: pending, stale (pending for over ten minutes) and failed.", "state")
	return relayMetrics{
		sent: events.WithLabelValues("sent"), refused: events.WithLabelValues("refused"),
		unknown: events.WithLabelValues("unknown"), away: events.WithLabelValues("away"),
		batch:   f.sized("outbox_batch_events", "Events that were claimed together.", prometheus.ExponentialBuckets(1, 2, 12)).WithLabelValues(),
		seconds: f.histogram("outbox_publish_duration_seconds", "Time until the broker had confirmed a batch of events, or not.").WithLabelValues(),
		age:     f.histogram("outbox_age_seconds", "Time from the commit of an event until it was marked as sent.").WithLabelValues(),
		faults:  f.counter("outbox_store_failures_total", "Failures of the relay to reach the database.").WithLabelValues(),
		pending: backlog.WithLabelValues("pending"), stale: backlog.WithLabelValues("stale"), failed: backlog.WithLabelValues("failed"),
		oldest: f.gauge("outbox_oldest_seconds", "Age of the oldest event that waits to be sent, in all of the shop.").WithLabelValues(),
	}
}

// outboxMetrics is the outbox.Observer.
type outboxMetrics struct {
	*metrics
	log *slog.Logger
}

var _ outbox.Observer = outboxMetrics{}

func (m outboxMetrics) Claimed(events int, _ time.Duration) { m.outbox.batch.Observe(float64(events)) }

func (m outboxMetrics) Published(o outbox.Outcome, took time.Duration) {
	m.outbox.sent.Add(float64(o.Sent))
	m.outbox.refused.Add(float64(o.GivenUp))
	m.outbox.unknown.Add(float64(o.Retry))
	m.outbox.away.Add(float64(o.Unavailable))
	m.outbox.seconds.Observe(took.Seconds())
}

func (m outboxMetrics) Sent(_ outbox.Event, age time.Duration) { m.outbox.age.Observe(age.Seconds()) }

func (m outboxMetrics) GaveUp(e outbox.Event, err error) {
	m.log.Error("an event was given up; seckill outbox retry brings it back", "event", e.ID, "type", e.Type, "order", e.Key, "error", err)
}

func (m outboxMetrics) Paused(d time.Duration) {
	away := d > 0
	turned := away != m.away.Swap(away)
	switch {
	case turned && away:
		m.log.Warn("the broker is away; events wait in the outbox")
	case turned:
		m.log.Info("the broker is back")
	}
	m.breaker("broker", away, turned)
}

func (m outboxMetrics) Failed(err error) {
	m.outbox.faults.Inc()
	m.log.Warn("the relay cannot reach the database; it tries again", "error", err)
}

func (m outboxMetrics) Checked(h outbox.Health) { m.outbox.stale.Set(float64(h.Stale)) }

// outboxBacklog takes readings of all that is not sent: h.Oldest is the age of the oldest of those.
func (m *metrics) outboxBacklog(h outbox.Health) {
	m.outbox.pending.Set(float64(h.Pending))
	m.outbox.failed.Set(float64(h.Failed))
	m.outbox.oldest.Set(h.Oldest.Seconds())
}
