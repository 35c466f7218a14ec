package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Alert is what a webhook gets as JSON.
type Alert struct {
	Alert         string    `json:"alert"` // "outbox"
	Text          string    `json:"text"`  // for people
	Instance      string    `json:"instance"`
	Pending       int64     `json:"pending"`
	Stale         int64     `json:"stale"`
	Failed        int64     `json:"failed"`
	OldestSeconds int64     `json:"oldest_seconds"`
	At            time.Time `json:"at"`
}

// Monitor raises an alert when events stay in the outbox for too long or were given up.
type Monitor struct {
	Maintenance Maintenance
	Log         *slog.Logger
	Instance    string // names this process in alerts

	StaleAfter time.Duration // default 10 min
	// Observe gets every reading, for metrics. May be nil.
	Observe func(Health)
	// Alert passes an alert on, to a Webhook for instance. May be nil. Between two alerts are AlertEvery at least;
	// default 10 min. What could not be passed on is tried again at the next check.
	Alert      func(ctx context.Context, a Alert) error
	AlertEvery time.Duration

	mu   sync.Mutex
	last time.Time
}

// Check looks once. A check that finds something wrong writes a line at error level each time.
func (m *Monitor) Check(ctx context.Context) (Health, error) {
	stale, every := m.StaleAfter, m.AlertEvery
	orDefault(&stale, 10*time.Minute)
	orDefault(&every, 10*time.Minute)
	h, err := m.Maintenance.Health(ctx, stale)
	if err != nil {
		return h, err
	}
	if m.Observe != nil {
		m.Observe(h)
	}
	if h.Healthy() {
		return h, nil
	}
	m.Log.Error("outbox: events are not sent", "stale", h.Stale, "oldest", h.Oldest.Round(time.Second), "failed", h.Failed, "pending", h.Pending)
	if m.Alert == nil || !m.due(every) {
		return h, nil
	}
	if err := m.Alert(ctx, m.alert(h, stale)); err != nil {
		m.forget()
		return h, fmt.Errorf("outbox: pass the alert on: %w", err)
	}
	return h, nil
}

// due tells whether an alert may go out, and takes the turn.
func (m *Monitor) due(every time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.last.IsZero() && time.Since(m.last) < every {
		return false
	}
	m.last = time.Now()
	return true
}

// forget gives the turn back.
func (m *Monitor) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.last = time.Time{}
}

func (m *Monitor) alert(h Health, stale time.Duration) Alert {
	return Alert{
		Alert: "outbox", Instance: m.Instance, At: time.Now().UTC(),
		Text: fmt.Sprintf("%d events have not been sent for over %v, the oldest for %v; %d were given up",
			h.Stale, stale, h.Oldest.Round(time.Second), h.Failed),
		Pending: h.Pending, Stale: h.Stale, Failed: h.Failed, OldestSeconds: int64(h.Oldest / time.Second),
	}
}
