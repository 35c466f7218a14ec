package rabbitmq_test

import (
	"log/slog"
	"strconv"
	"testing"

	amqp "github.com/rabbitmq/amqp091-go"
	"go.uber.org/goleak"

	"seckill/repository/broker/rabbitmq"
	"seckill/repository/repotest/brokerserver"
	"seckill/service/outbox"
	"seckill/service/outbox/brokertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBroker(t *testing.T) {
	server := brokerserver.RabbitMQ(t)
	brokertest.Run(t, brokertest.Config{
		Server:   server,
		Oversize: 16<<20 + 1,
		Open: func(t *testing.T, topic string, groups ...string) outbox.Broker {
			return open(t, server.URL(), topic, groups...)
		},
		DeadLetters: func(t *testing.T, topic, group string) (ids []int64) {
			ch := channel(t, server.URL())
			for {
				d, ok, err := ch.Get(rabbitmq.DeadQueue(topic, group), false)
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					return ids
				}
				id, err := strconv.ParseInt(d.Headers[outbox.HeaderID].(string), 10, 64)
				if err != nil {
					t.Error(err)
				}
				ids = append(ids, id)
			}
		},
	})
}

func open(t *testing.T, url, topic string, groups ...string) *rabbitmq.Broker {
	t.Helper()
	b, err := rabbitmq.New(rabbitmq.Options{URL: url + "?heartbeat=1", Exchange: topic, Groups: groups,
		Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// channel opens a test's own channel to the server.
func channel(t *testing.T, url string) *amqp.Channel {
	t.Helper()
	conn, err := amqp.Dial(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	ch, err := conn.Channel()
	if err != nil {
		t.Fatal(err)
	}
	return ch
}
