package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// Job is something that has to be done now and then. When that is, is a scheduler's matter. Doing a job twice at once,
// here or in another process, is harmless.
type Job struct {
	Name  string
	Every time.Duration // how often it makes sense to run it
	// Run does it and says in a few words what it did.
	Run func(ctx context.Context) (string, error)
}

// Jobs are what keeps an outbox in order.
type Jobs struct {
	Relay       *Relay
	Maintenance Maintenance
	Monitor     *Monitor
	Log         *slog.Logger

	// PurgeAfter is how long sent events are kept; default 7 days. Archive moves them instead of deleting them.
	PurgeAfter time.Duration
	Archive    bool
	// Reconcile says what each consumer should have recorded. After defaults to 10 minutes, Within to a day.
	Reconcile []Reconcile
}

// The sizes of what jobs do at a time.
const (
	purgeBatch     = 500 // rows a transaction: a few milliseconds
	reconcileLimit = 100
)

// List returns the jobs: rescue, monitor, purge, and reconcile if there is anything to reconcile.
func (j Jobs) List() []Job {
	orDefault(&j.PurgeAfter, 7*24*time.Hour)
	list := []Job{
		{"outbox-rescue", time.Minute, j.rescue},
		{"outbox-monitor", time.Minute, j.monitor},
		{"outbox-purge", time.Hour, j.purge},
	}
	if len(j.Reconcile) > 0 {
		list = append(list, Job{"outbox-reconcile", 10 * time.Minute, j.reconcile})
	}
	return list
}

func (j Jobs) rescue(ctx context.Context) (string, error) {
	o, err := j.Relay.Rescue(ctx)
	if n := o.Sent + o.Refused + o.Unknown + o.Away; n > 0 {
		j.Log.Warn("outbox: rescued events that no relay had sent", "sent", o.Sent, "refused", o.Refused, "unknown", o.Unknown, "away", o.Away)
	}
	return fmt.Sprintf("%d sent, %d given up, %d to be tried again, %d wait for the broker", o.Sent, o.Refused, o.Unknown, o.Away), err
}

func (j Jobs) monitor(ctx context.Context) (string, error) {
	h, err := j.Monitor.Check(ctx)
	return fmt.Sprintf("%d pending, %d of them stale, %d failed", h.Pending, h.Stale, h.Failed), err
}

// purge works in small commits, and rests after each one as long as that took, so that whoever inserts has the server
// for half of the time at least.
func (j Jobs) purge(ctx context.Context) (string, error) {
	total := 0
	for {
		start := time.Now()
		n, err := j.Maintenance.Purge(ctx, j.PurgeAfter, purgeBatch, j.Archive)
		total += n
		if err != nil || n == 0 {
			return fmt.Sprintf("%d events purged", total), err
		}
		select {
		case <-ctx.Done():
			return fmt.Sprintf("%d events purged, and not done", total), context.Cause(ctx)
		case <-time.After(time.Since(start)):
		}
	}
}

func (j Jobs) reconcile(ctx context.Context) (string, error) {
	total := 0
	for _, c := range j.Reconcile {
		orDefault(&c.After, 10*time.Minute)
		orDefault(&c.Within, 24*time.Hour)
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
