package app

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"seckill/repository/repotest/dbtest"
	"seckill/repository/repotest/redistest"
	"seckill/service/outbox"
)

// Separate consumers serve the health probes of a shop and no other route.
func TestConsumers_Probes(t *testing.T) {
	dbtest.EachServer(t, func(t *testing.T, server *dbtest.Server) {
		opts := optionsFor(t, server.Create(), redistest.Start(t).Addr)
		opts.Events.Broker = "redis"
		consumers := consume(t, opts)
		expect := func(path string, status int, text string) {
			t.Helper()
			if got, body := get(t, consumers.URL()+path); got != status || !strings.Contains(body, text) {
				t.Errorf("%s: %d %s, want %d …%s…", path, got, body, status, text)
			}
		}
		expect("/healthz", http.StatusOK, `"ok"`)
		expect("/readyz", http.StatusOK, `"ready"`)
		expect("/metrics", http.StatusOK, "go_goroutines")
		expect("/api/v1/vouchers", http.StatusNotFound, `"not-found"`)
		server.Pause()
		defer server.Resume()
		expect("/readyz", http.StatusServiceUnavailable, `"not-ready"`)
		expect("/healthz", http.StatusOK, `"ok"`)
	})
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 30 * time.Second}
	response, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// endingBroker ends every subscription at once.
type endingBroker struct{ outbox.Broker }

var errEnding = errors.New("this broker ends")

func (endingBroker) Subscribe(context.Context, string, outbox.Handler) error { return errEnding }

// A consumer that ends unexpectedly ends its process, so that a supervisor starts it again.
func TestConsumers_EndIsReported(t *testing.T) {
	opts := defaults(t)
	opts.Events.Notify = true // two consumers: one is reported, the other must not hang
	consumers := newApp(opts, quiet(t))
	opened, err := OpenDatabase(t.Context(), &opts, quiet(t))
	if err != nil {
		t.Fatal(err)
	}
	consumers.DB = opened
	defer func() { _ = opened.Close() }()
	if _, err := opened.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := consumers.startConsumers(endingBroker{}, consumers.fail); err != nil {
		t.Fatal(err)
	}
	defer closeApp(t, consumers)
	select {
	case err := <-consumers.Failed():
		if !errors.Is(err, errEnding) {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Error("the end was not reported")
	}
}
