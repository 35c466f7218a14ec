package rabbitmq_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/repository/broker/rabbitmq"
	"seckill/repository/repotest/brokerserver"
	"seckill/repository/repotest/faultproxy"
	"seckill/service/outbox"
	"seckill/service/outbox/brokertest"
)

// Connections break and confirmations are lost: unconfirmed events are published again, and every event arrives.
func TestBroker_ConnectionsBreak(t *testing.T) {
	server := brokerserver.RabbitMQ(t)
	proxy := faultproxy.New(t, server.Addr)
	b := open(t, strings.Replace(server.URL(), server.Addr, proxy.Addr(), 1), brokertest.Topic(), "points")
	defer b.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var mu sync.Mutex
	got := map[int64]int{}
	ended := make(chan error, 1)
	go func() {
		ended <- b.Subscribe(ctx, "points", func(_ context.Context, e outbox.Event) error {
			mu.Lock()
			defer mu.Unlock()
			got[e.ID]++
			return nil
		})
	}()
	breaking, whole := context.WithTimeout(ctx, 8*time.Second)
	defer whole()
	var breaks sync.WaitGroup
	breaks.Go(func() {
		for breaking.Err() == nil {
			time.Sleep(300 * time.Millisecond)
			proxy.Cut()
		}
	})
	lost := 0
	published := map[int64]bool{}
	for breaking.Err() == nil {
		events := brokertest.Events(100)
		for _, e := range events {
			published[e.ID] = true
		}
		for len(events) > 0 {
			var again []outbox.Event
			for i, err := range b.Publish(ctx, events) {
				if err != nil {
					again = append(again, events[i])
				}
			}
			lost += len(again)
			events = again
		}
	}
	breaks.Wait()
	if cut := proxy.Stats().Cut; cut < 10 || lost == 0 {
		t.Errorf("%d connections were cut and %d confirmations lost: the fault took no effect", cut, lost)
	}
	arrived := func() int { mu.Lock(); defer mu.Unlock(); return len(got) }
	for start := time.Now(); arrived() < len(published) && time.Since(start) < time.Minute; {
		time.Sleep(20 * time.Millisecond)
	}
	if n := arrived(); n != len(published) {
		t.Errorf("%d of %d events arrived", n, len(published))
	}
	t.Logf("%d events, %d confirmations lost", len(published), lost)
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// Fifty clients of a restarting server reconnect at different times, and all of them do.
func TestBroker_RestartUnderFiftyClients(t *testing.T) {
	const clients = 50
	server := brokerserver.RabbitMQ(t)
	var tries lines
	topic := brokertest.Topic()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer cancel()
	for range clients {
		b, err := rabbitmq.New(rabbitmq.Options{
			URL: server.URL() + "?heartbeat=1", Exchange: topic, Groups: []string{"points"},
			Log: slog.New(slog.NewTextHandler(&tries, nil)), // a line each time that a connection is lost or fails
		})
		if err != nil {
			t.Fatal(err)
		}
		running.Go(func() {
			defer b.Close()
			if err := b.Subscribe(ctx, "points", func(context.Context, outbox.Event) error { return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	waitForConsumers(t, server, topic, clients)
	server.Stop(t)
	down := time.Now()
	most, last := int64(0), tries.n.Load()
	for time.Since(down) < 15*time.Second {
		time.Sleep(100 * time.Millisecond)
		now := tries.n.Load()
		if time.Since(down) > 4*time.Second { // the first tries come soon after the loss, as they should
			most = max(most, now-last)
		}
		last = now
	}
	if most == 0 || most > clients/3 {
		t.Errorf("up to %d of %d clients tried within 100 ms, want some, but not many at once", most, clients)
	}
	server.Start(t)
	waitForConsumers(t, server, topic, clients)
}

// lines counts what is written line by line.
type lines struct{ n atomic.Int64 }

func (l *lines) Write(line []byte) (int, error) {
	l.n.Add(1)
	return len(line), nil
}

func waitForConsumers(t *testing.T, server *brokerserver.Container, topic string, want int) {
	t.Helper()
	var out string
	for start := time.Now(); time.Since(start) < time.Minute; time.Sleep(200 * time.Millisecond) {
		out = server.Run(t, "rabbitmqctl", "-q", "list_consumers", "queue_name")
		if strings.Count(out, topic+".points") == want {
			return
		}
	}
	t.Fatalf("%d consumers, want %d", strings.Count(out, topic+".points"), want)
}
