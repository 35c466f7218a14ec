package redisstream_test

import (
	"context"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"seckill/repository/broker/redisstream"
	"seckill/repository/repotest/redistest"
	"seckill/repository/repotest/wait"
	"seckill/service/outbox"
	"seckill/service/outbox/brokertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func connect(t *testing.T, addr string) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// server is a Redis server that keeps what it has confirmed.
type server struct{ *redistest.Server }

func (s server) Stop(*testing.T)   { s.Kill() }
func (s server) Start(*testing.T)  { s.Restart() }
func (s server) Freeze(*testing.T) { s.Pause() }
func (s server) Thaw(*testing.T)   { s.Resume() }

func open(t *testing.T, client *redis.Client, opts redisstream.Options) *redisstream.Broker {
	t.Helper()
	b, err := redisstream.New(client, opts)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBroker(t *testing.T) {
	redisServer := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	client := connect(t, redisServer.Addr)
	brokertest.Run(t, brokertest.Config{
		Server: server{redisServer},
		Open: func(t *testing.T, topic string, groups ...string) outbox.Broker {
			return open(t, client, redisstream.Options{Stream: topic, Groups: groups, ClaimAfter: 2 * time.Second})
		},
		DeadLetters: func(t *testing.T, topic, group string) (ids []int64) {
			entries, err := client.XRange(t.Context(), redisstream.DeadStream(topic, group), "-", "+").Result()
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries {
				id, err := strconv.ParseInt(e.Values[outbox.HeaderID].(string), 10, 64)
				if err != nil || e.Values["error"] == "" {
					t.Errorf("dead letter %v (%v)", e.Values, err)
				}
				ids = append(ids, id)
			}
			return ids
		},
	})
}

// An entry is kept until every group has acknowledged it, and removed then.
func TestBroker_TrimsAcknowledgedEntries(t *testing.T) {
	client := connect(t, redistest.Start(t).Addr)
	stream := brokertest.Topic()
	b := open(t, client, redisstream.Options{Stream: stream, Groups: []string{"points", "notification"}, ClaimAfter: 50 * time.Millisecond})
	defer b.Close()
	ctx, cancel := context.WithCancel(t.Context())
	var subscriptions sync.WaitGroup
	defer subscriptions.Wait()
	defer cancel()
	subscribe := func(group string) {
		subscriptions.Go(func() {
			if err := b.Subscribe(ctx, group, func(context.Context, outbox.Event) error { return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	length := func() int64 { return client.XLen(ctx, stream).Val() }

	const events = 1000
	for i, err := range b.Publish(ctx, brokertest.Events(events)) {
		if err != nil {
			t.Fatalf("event %d: %v", i, err)
		}
	}
	subscribe("points")
	wait.Within(t, time.Minute, "points has acknowledged every entry", func() bool {
		for _, g := range client.XInfoGroups(ctx, stream).Val() {
			if g.Name == "points" && g.EntriesRead == events && g.Pending == 0 {
				return true
			}
		}
		return false
	})
	if n := length(); n != events {
		t.Errorf("%d of %d entries are kept for a group that has not read them", n, events)
	}
	subscribe("notification")
	// Redis removes whole blocks of a hundred entries.
	wait.Within(t, time.Minute, "the stream is trimmed", func() bool { return length() <= 100 })
}
