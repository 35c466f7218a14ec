package kafka_test

import (
	"context"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"seckill/repository/broker/kafka"
	"seckill/repository/repotest/brokerserver"
	"seckill/service/outbox"
	"seckill/service/outbox/brokertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBroker(t *testing.T) {
	server, err := brokerserver.Kafka(t)
	if err != nil {
		t.Logf("%v: the suite runs on kfake, the fake of the client's own project, and no server is broken", err)
		fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SleepOutOfOrder())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(fake.Close)
		run(t, fake.ListenAddrs(), nil)
		return
	}
	run(t, []string{server.Addr}, server)
}

func run(t *testing.T, seeds []string, server brokertest.Server) {
	brokertest.Run(t, brokertest.Config{
		Server:   server,
		Oversize: 2 << 20,
		Open: func(t *testing.T, topic string, groups ...string) outbox.Broker {
			b, err := kafka.New(kafka.Options{Seeds: seeds, Topic: topic, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
			if err != nil {
				t.Fatal(err)
			}
			return b
		},
		DeadLetters: func(t *testing.T, topic, group string) []int64 { return read(t, seeds, kafka.DeadTopic(topic, group)) },
	})
}

// read returns the ids of the events in a topic.
func read(t *testing.T, seeds []string, topic string) (ids []int64) {
	client, err := kgo.NewClient(kgo.SeedBrokers(seeds...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	client.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
		for _, h := range r.Headers {
			if h.Key == outbox.HeaderID {
				id, err := strconv.ParseInt(string(h.Value), 10, 64)
				if err != nil {
					t.Error(err)
				}
				ids = append(ids, id)
			}
		}
	})
	return ids
}
