package outbox

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// Job is work that a scheduler runs periodically. Concurrent runs of the same job, also in several processes, are
// harmless.
type Job struct {
	Name  string
	Every time.Duration // recommended period
	// Run does the work and returns a short summary of it.
	Run func(ctx context.Context) (string, error)
}

// Jobs are the jobs that keep an outbox healthy.
type Jobs struct {
	Relay       *Relay
	Maintenance Maintenance
	Log         *slog.Logger

	Instance string // names this process in alerts
	// Alert sends an alert to an operator; nil: nobody is alerted. Alerts are at least ten minutes apart. If it fails, the
	// next check sends the alert again.
	Alert func(ctx context.Context, a Alert) error

	PurgeAfter time.Duration // how long sent events are kept; default 7 days
	Archive    bool          // move sent events to another table instead of deleting them
	Reconcile  []Reconcile   // what each consumer should have recorded; After and Within are set here

	mu        sync.Mutex
	lastAlert time.Time
}

// Alert reports events that are not sent. Its JSON is the body of a webhook.
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

const (
	staleAfter      = 10 * time.Minute // age of a pending event that an operator should know of
	alertEvery      = 10 * time.Minute
	purgeBatch      = 500              // rows per transaction: a few milliseconds
	reconcileAfter  = 10 * time.Minute // time that a consumer has to record an event
	reconcileWithin = 24 * time.Hour
	reconcileLimit  = 100
)

// List returns the jobs.
func (j *Jobs) List() []Job {
	return []Job{
		{"outbox-rescue", time.Minute, j.rescue},
		{"outbox-monitor", time.Minute, j.monitor},
		{"outbox-purge", time.Hour, j.purge},
		{"outbox-reconcile", 10 * time.Minute, j.reconcile},
	}
}

// rescue publishes events that no relay has published in time.
func (j *Jobs) rescue(ctx context.Context) (string, error) {
	o, err := j.Relay.Rescue(ctx)
	if o != (Outcome{}) {
		j.Log.Warn("outbox: rescued events that no relay had sent", "sent", o.Sent, "given_up", o.GivenUp, "retry", o.Retry, "unavailable", o.Unavailable)
	}
	return fmt.Sprintf("%d sent, %d given up, %d to be tried again, %d wait for the broker", o.Sent, o.GivenUp, o.Retry, o.Unavailable), err
}

// monitor logs an error and raises an alert if events have been pending for too long or were given up.
func (j *Jobs) monitor(ctx context.Context) (string, error) {
	h, err := j.Maintenance.Health(ctx, staleAfter)
	if err != nil {
		return "", err
	}
	j.Relay.cfg.Observer.Checked(h)
	if h.Stale > 0 || h.Failed > 0 {
		j.Log.Error("outbox: events are not sent", "stale", h.Stale, "oldest", h.Oldest.Round(time.Second), "failed", h.Failed, "pending", h.Pending)
		err = j.alert(ctx, h)
	}
	return fmt.Sprintf("%d pending, %d of them stale, %d failed", h.Pending, h.Stale, h.Failed), err
}

func (j *Jobs) alert(ctx context.Context, h Health) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.Alert == nil || !j.lastAlert.IsZero() && time.Since(j.lastAlert) < alertEvery {
		return nil
	}
	err := j.Alert(ctx, Alert{
		Alert: "outbox", Instance: j.Instance, At: time.Now().UTC(),
		Text: fmt.Sprintf("%d events have not been sent for over %v, the oldest for %v; %d were given up",
			h.Stale, staleAfter, h.Oldest.Round(time.Second), h.Failed),
		Pending: h.Pending, Stale: h.Stale, Failed: h.Failed, OldestSeconds: int64(h.Oldest / time.Second),
	})
	if err != nil {
		return fmt.Errorf("outbox: send an alert: %w", err)
	}
	j.lastAlert = time.Now()
	return nil
}

// purge removes old events in small transactions. After each it rests as long as that took, so that inserts have the
// database for at least half of the time.
func (j *Jobs) purge(ctx context.Context) (string, error) {
	total := 0
	for {
		start := time.Now()
		n, err := j.Maintenance.Purge(ctx, cmp.Or(j.PurgeAfter, 7*24*time.Hour), purgeBatch, j.Archive)
		total += n
		if err != nil || n == 0 {
			return fmt.Sprintf("%d events purged", total), err
		}
		select {
		case <-ctx.Done():
			return fmt.Sprintf("%d events purged; interrupted", total), context.Cause(ctx)
		case <-time.After(time.Since(start)):
		}
	}
}

// reconcile logs sent events that their consumer has not recorded.
func (j *Jobs) reconcile(ctx context.Context) (string, error) {
	total := 0
	for _, c := range j.Reconcile {
		c.After, c.Within = reconcileAfter, reconcileWithin
		missing, err := j.Maintenance.Unconsumed(ctx, c, reconcileLimit)
		if err != nil {
			return "", err
		}
		if len(missing) > 0 {
			j.Log.Error("outbox: sent events that their consumer has not recorded", "consumer", c.Consumer,
				"events", len(missing), "more", len(missing) == reconcileLimit, "first", missing[0])
		}
		total += len(missing)
	}
	return fmt.Sprintf("%d sent events are not recorded", total), nil
}
