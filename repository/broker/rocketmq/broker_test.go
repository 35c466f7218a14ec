package rocketmq_test

import (
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2/admin"
	"github.com/apache/rocketmq-client-go/v2/primitive"

	"seckill/repository/broker/rocketmq"
	"seckill/repository/repotest/brokerserver"
	"seckill/service/outbox"
	"seckill/service/outbox/brokertest"
)

func TestBroker(t *testing.T) {
	server, err := brokerserver.RocketMQ(t)
	if err != nil {
		if os.Getenv("SECKILL_TEST_REQUIRED") == "1" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	made := map[string]bool{}
	brokertest.Run(t, brokertest.Config{
		Server:    server,
		Unordered: true,
		Oversize:  4 << 20,
		Pause:     20 * time.Second, // consumers find the topic of what goes back only after a while
		Open: func(t *testing.T, topic string, groups ...string) outbox.Broker {
			if !made[topic] {
				create(t, server, topic)
				made[topic] = true
			}
			b, err := rocketmq.New(rocketmq.Options{NameServers: []string{server.NameServer}, Topic: topic, Log: slog.New(slog.DiscardHandler)})
			if err != nil {
				t.Fatal(err)
			}
			return b
		},
	})
}

func create(t *testing.T, server *brokerserver.RocketMQServer, topic string) {
	t.Helper()
	a, err := admin.NewAdmin(admin.WithResolver(primitive.NewPassthroughResolver([]string{server.NameServer})))
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	var last error
	for range 50 { // the broker may still be registering
		last = a.CreateTopic(t.Context(), admin.WithTopicCreate(topic), admin.WithBrokerAddrCreate(server.Broker),
			admin.WithReadQueueNums(4), admin.WithWriteQueueNums(4))
		if last == nil {
			return
		}
		time.Sleep(200 * time.Millisecond)
	}
	t.Fatal(last)
}
