package outbox_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"seckill/service/outbox"
)

// maintenance returns what a test sets.
type maintenance struct {
	outbox.Maintenance
	health     outbox.Health
	purge      []int
	unconsumed map[string][]int64
	asked      []outbox.Reconcile
}

func (k *maintenance) Health(context.Context, time.Duration) (outbox.Health, error) {
	return k.health, nil
}

func (k *maintenance) Purge(_ context.Context, age time.Duration, _ int, archive bool) (int, error) {
	if age != 7*24*time.Hour || !archive || len(k.purge) == 0 {
		return 0, errors.New("purged what it should not")
	}
	n := k.purge[0]
	k.purge = k.purge[1:]
	return n, nil
}

func (k *maintenance) Unconsumed(_ context.Context, c outbox.Reconcile, _ int) ([]int64, error) {
	k.asked = append(k.asked, c)
	return k.unconsumed[c.Consumer], nil
}

// observed keeps the readings of the monitor.
type observed struct {
	outbox.NoObserver
	health []outbox.Health
}

func (o *observed) Checked(h outbox.Health) { o.health = append(o.health, h) }

// monitorOf returns the monitor job, which needs no more than the maintenance.
func monitorOf(t *testing.T, jobs *outbox.Jobs) outbox.Job {
	t.Helper()
	for _, job := range jobs.List() {
		if job.Name == "outbox-monitor" {
			return job
		}
	}
	t.Fatal("there is no monitor job")
	return outbox.Job{}
}

func TestJobs_MonitorLimitsAlerts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, seen := &maintenance{}, &observed{}
		var alerts []outbox.Alert
		var refuse error
		var log bytes.Buffer
		monitor := monitorOf(t, &outbox.Jobs{
			Relay: outbox.NewRelay(outbox.Config{Observer: seen}), Maintenance: k, Log: slog.New(slog.NewTextHandler(&log, nil)), Instance: "one",
			Alert: func(_ context.Context, a outbox.Alert) error { alerts = append(alerts, a); return refuse },
		})
		checks := 0
		check := func(wantAlerts, wantLines int) {
			t.Helper()
			checks++
			_, err := monitor.Run(t.Context())
			if !errors.Is(err, refuse) || len(alerts) != wantAlerts || strings.Count(log.String(), "level=ERROR") != wantLines {
				t.Errorf("%d alerts and %d lines (%v), want %d and %d", len(alerts), strings.Count(log.String(), "level=ERROR"), err, wantAlerts, wantLines)
			}
			log.Reset()
		}
		check(0, 0)
		k.health = outbox.Health{Backlog: outbox.Backlog{Pending: 7}, Stale: 3, Oldest: time.Hour}
		refuse = errors.New("nobody listens")
		check(1, 1)
		refuse = nil
		check(2, 1) // again, because the first one failed
		for range 9 {
			time.Sleep(time.Minute)
			check(2, 1)
		}
		time.Sleep(time.Minute)
		check(3, 1)
		if a := alerts[2]; a.Stale != 3 || a.Pending != 7 || a.OldestSeconds != 3600 || a.Instance != "one" || !strings.Contains(a.Text, "1h0m0s") {
			t.Errorf("alert %+v", a)
		}
		if len(seen.health) != checks || seen.health[checks-1] != k.health {
			t.Errorf("the observer got %d readings of %d, the last %+v", len(seen.health), checks, seen.health[checks-1])
		}
	})
}

func TestJobs_List(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &maintenance{purge: []int{500, 500, 7, 0}, unconsumed: map[string][]int64{"points": {4, 5}}}
		var log bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&log, nil))
		store := &memory{}
		store.add(1)
		store.rows[0].attempts = 3
		jobs := &outbox.Jobs{
			Relay: outbox.NewRelay(outbox.Config{Store: store, Broker: &script{}}), Maintenance: k, Log: logger, Archive: true,
			Reconcile: []outbox.Reconcile{{Consumer: "points", Types: []string{"ORDER_PAID"}}, {Consumer: "notification"}},
		}
		want := map[string]string{
			"outbox-rescue":    "1 sent, 0 given up, 0 to be tried again, 0 wait for the broker",
			"outbox-monitor":   "0 pending, 0 of them stale, 0 failed",
			"outbox-purge":     "1007 events purged",
			"outbox-reconcile": "2 sent events are not recorded",
		}
		list := jobs.List()
		if len(list) != len(want) {
			t.Errorf("%d jobs, want %d", len(list), len(want))
		}
		for _, job := range list {
			if said, err := job.Run(t.Context()); err != nil || said != want[job.Name] {
				t.Errorf("%s: %q (%v), want %q", job.Name, said, err, want[job.Name])
			}
		}
		if len(k.asked) != 2 || k.asked[0].After != 10*time.Minute || k.asked[0].Within != 24*time.Hour {
			t.Errorf("reconciled %+v", k.asked)
		}
		if !strings.Contains(log.String(), "consumer=points events=2") {
			t.Errorf("missing records are not logged: %s", log.String())
		}
	})
}
