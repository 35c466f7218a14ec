package outbox_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"seckill/service/outbox"
)

// keeper answers as a test says.
type keeper struct {
	outbox.Keeper
	health     outbox.Health
	purge      []int
	unconsumed map[string][]int64
	asked      []outbox.Reconcile
}

func (k *keeper) Health(context.Context, time.Duration) (outbox.Health, error) { return k.health, nil }

func (k *keeper) Purge(_ context.Context, age time.Duration, _ int, archive bool) (int, error) {
	if age != 7*24*time.Hour || !archive || len(k.purge) == 0 {
		return 0, errors.New("purged what it should not")
	}
	n := k.purge[0]
	k.purge = k.purge[1:]
	return n, nil
}

func (k *keeper) Unconsumed(_ context.Context, c outbox.Reconcile, _ int) ([]int64, error) {
	k.asked = append(k.asked, c)
	return k.unconsumed[c.Consumer], nil
}

func TestMonitorRaisesAnAlertNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keeper{}
		var alerts []outbox.Alert
		var refuse error
		var log bytes.Buffer
		m := &outbox.Monitor{
			Keeper: k, Log: slog.New(slog.NewTextHandler(&log, nil)), Instance: "one",
			Alert: func(_ context.Context, a outbox.Alert) error { alerts = append(alerts, a); return refuse },
		}
		check := func(wantAlerts, wantLines int) {
			t.Helper()
			_, err := m.Check(t.Context())
			if !errors.Is(err, refuse) || len(alerts) != wantAlerts || strings.Count(log.String(), "level=ERROR") != wantLines {
				t.Errorf("%d alerts and %d lines (%v), want %d and %d", len(alerts), strings.Count(log.String(), "level=ERROR"), err, wantAlerts, wantLines)
			}
		}
		check(0, 0)
		k.health = outbox.Health{Backlog: outbox.Backlog{Pending: 7}, Stale: 3, Oldest: time.Hour}
		refuse = errors.New("nobody listens")
		check(1, 1)
		refuse = nil
		check(2, 2) // again, since it was not passed on
		for range 9 {
			time.Sleep(time.Minute)
			check(2, 3)
			log.Reset()
			log.WriteString(strings.Repeat("level=ERROR\n", 2))
		}
		time.Sleep(time.Minute)
		check(3, 3)
		if a := alerts[2]; a.Stale != 3 || a.Pending != 7 || a.OldestSeconds != 3600 || a.Instance != "one" || !strings.Contains(a.Text, "1h0m0s") {
			t.Errorf("alert %+v", a)
		}
	})
}

func TestJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &keeper{purge: []int{500, 500, 7, 0}, unconsumed: map[string][]int64{"points": {4, 5}}}
		var log bytes.Buffer
		logger := slog.New(slog.NewTextHandler(&log, nil))
		store := &memory{}
		store.add(1)
		store.rows[0].attempts = 3
		jobs := outbox.Jobs{
			Relay: outbox.NewRelay(outbox.Config{Store: store, Broker: &script{}}), Keeper: k, Log: logger, Archive: true,
			Monitor:   &outbox.Monitor{Keeper: k, Log: logger},
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
			t.Errorf("nobody is told of missing records: %s", log.String())
		}
	})
}

func TestWebhook(t *testing.T) {
	answers := []int{503, 429, 200, 400}
	var keys []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var a outbox.Alert
		if err := json.NewDecoder(r.Body).Decode(&a); err != nil || a.Alert != "outbox" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("got %+v (%v)", a, err)
		}
		keys = append(keys, r.Header.Get("Idempotency-Key"))
		w.WriteHeader(answers[0])
		answers = answers[1:]
	}))
	defer server.Close()
	w, err := outbox.NewWebhook(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	w.SetPauses(time.Millisecond, time.Millisecond)
	if err := w.Post(t.Context(), "event-7", outbox.Alert{Alert: "outbox"}); err != nil || len(keys) != 3 || keys[2] != "event-7" {
		t.Errorf("posted with keys %v (%v), want three times with the same", keys, err)
	}
	if err := w.Alert(t.Context(), outbox.Alert{Alert: "outbox"}); err == nil || len(keys) != 4 || keys[3] != "" {
		t.Errorf("an answer that will not get better: %v after %d posts, want an error after one", err, len(keys)-3)
	}
	server.Close()
	if err := w.Post(t.Context(), "", outbox.Alert{}); err == nil {
		t.Error("posted to nobody")
	}
	for _, address := range []string{"", "nowhere", "ftp://a/b", "http://", "http://a b/"} {
		if _, err := outbox.NewWebhook(address); err == nil {
			t.Errorf("took %q for an address", address)
		}
	}
}
