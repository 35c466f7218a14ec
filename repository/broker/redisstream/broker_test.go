package redisstream_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"seckill/repository/broker/redisstream"
	"seckill/repository/repotest/redistest"
	"seckill/service/outbox"
	"seckill/service/outbox/brokertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func connect(t *testing.T, addr string) *redis.Client {
	client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// server is one that keeps what it has confirmed.
type server struct{ *redistest.Server }

func (s server) Stop(*testing.T)   { s.Kill() }
func (s server) Start(*testing.T)  { s.Restart() }
func (s server) Freeze(*testing.T) { s.Pause() }
func (s server) Thaw(*testing.T)   { s.Resume() }

func TestBroker(t *testing.T) {
	redisServer := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	client := connect(t, redisServer.Addr)
	brokertest.Run(t, brokertest.Config{
		Server: server{redisServer},
		Open: func(t *testing.T, topic string, groups ...string) outbox.Broker {
			b, err := redisstream.New(client, redisstream.Options{
				Stream: topic, Groups: groups, ClaimAfter: 2 * time.Second,
			})
			if err != nil {
				t.Fatal(err)
			}
			return b
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
