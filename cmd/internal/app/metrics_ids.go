package app

import (
	"github.com/prometheus/client_golang/prometheus"

	"seckill/service/idgen"
)

func newIDMetrics(f maker) map[idgen.EventKind]prometheus.Counter {
	events := f.counter("ids_events_total", "What the id generator met on its way.", "event")
	ids := map[idgen.EventKind]prometheus.Counter{}
	for kind := idgen.ClockWait; kind <= idgen.SegmentFailed; kind++ {
		ids[kind] = events.WithLabelValues(kind.String())
	}
	return ids
}

func (m *metrics) idEvent(e idgen.Event) { m.ids[e.Kind].Inc() }

// watchSegment adds a segment's metrics, if there is one.
func watchSegment(m *metrics) func(s *idgen.Segment, err error) (idgen.Generator, error) {
	return func(s *idgen.Segment, err error) (idgen.Generator, error) {
		if err != nil {
			return nil, err
		}
		m.gauge("ids_segment_remaining", "Ids at hand.", func() float64 { return float64(s.Stats().Remaining) })
		m.gauge("ids_segment_step", "Ids that the next load asks for.", func() float64 { return float64(s.Stats().Step) })
		m.gauge("ids_segment_load_seconds", "Time that the last load took.", func() float64 { return s.Stats().LastLoad.Seconds() })
		m.counter("ids_segment_waits_total", "Times that a call had to wait for a load.", func() float64 { return float64(s.Stats().Waited) })
		m.gauge("ids_waiting_calls", "Calls that wait for ids.", func() float64 { return float64(s.Stats().Waiting) })
		return s, nil
	}
}

func (m *metrics) watchSnowflake(s *idgen.Snowflake) {
	m.gauge("ids_worker", "Worker id in use.", func() float64 { return float64(s.Stats().Worker) })
	// A lease is of the workers 2p and 2p+1, of which the second takes over from the first; see idgen.LeaseStore.
	m.gauge("ids_second_worker", "1 while the second worker id of the leased pair is in use.", func() float64 { return float64(s.Stats().Worker % 2) })
	m.gauge("ids_ahead_seconds", "How far ids are ahead of the clock.", func() float64 { return s.Stats().Ahead.Seconds() })
	m.gauge("ids_lease_left_seconds", "Time for which ids can be issued without a renewal.", func() float64 { return s.Stats().LeaseLeft.Seconds() })
	m.counter("ids_clock_rollbacks_total", "Times that the clock was seen to go back.", func() float64 { return float64(s.Stats().Rollbacks) })
	m.gauge("ids_waiting_calls", "Calls that wait for ids.", func() float64 { return float64(s.Stats().Waiting) })
}
