package app

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"seckill/handler/token"
	"seckill/repository/repotest/brokerserver"
	"seckill/repository/repotest/dbtest"
	"seckill/repository/repotest/redistest"
	"seckill/repository/repotest/wait"
)

// Events reach consumers in another process over every broker, and take effect once. Two instances serve without
// consumers, and two others consume.
func TestEvents_EveryBroker(t *testing.T) {
	brokers := map[string]func(t *testing.T, opts *Options){
		"redis": func(t *testing.T, opts *Options) {
			opts.Servers.RedisAddrs = []string{redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always").Addr}
		},
		"rabbitmq": func(t *testing.T, opts *Options) { opts.Events.AMQPURL = brokerserver.RabbitMQ(t).URL() },
		"kafka": func(t *testing.T, opts *Options) {
			server, err := brokerserver.Kafka(t)
			if errors.Is(err, brokerserver.ErrUnavailable) {
				t.Skipf("no Kafka on this machine, its broker is tested with its client's fake only: %v", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			opts.Events.KafkaAddrs = []string{server.Addr}
		},
	}
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		for name, provide := range brokers {
			t.Run(name, func(t *testing.T) {
				opts := optionsFor(t, target, "")
				opts.Events.Broker, opts.Events.Consume, opts.Events.Notify = name, false, true
				provide(t, &opts)
				shops := []*App{open(t, opts), open(t, opts)}
				for range 2 {
					consume(t, opts)
				}
				voucher := newBuyer(t, checked(t), shops[0].URL(), 1, token.Admin).createVoucher(sale(200, 1, time.Hour))
				first := int64(nextUser.Add(1000))
				counts := runBuyers(200, 16, func(i int) []answer {
					user := newBuyer(t, fast, shops[i%2].URL(), first+int64(i), token.User)
					order := user.place(voucher).mustBe(t, "201").text("id")
					return []answer{user.do(http.MethodPost, "/api/v1/orders/"+order+"/pay", nil)}
				})
				if counts["200"] != 200 {
					t.Errorf("got %v", counts)
				}
				wait.Within(t, 20*time.Second, "the effect of every event", func() bool {
					audit, err := shops[0].DB.Audit(t.Context(), everything)
					return err == nil && audit.OK
				})
				mustAudit(t, shops[0].DB)
			})
		}
	})
}

// consume runs the consumers until the test ends.
func consume(t *testing.T, opts Options) *App {
	t.Helper()
	running, err := StartConsumers(t.Context(), opts, quiet(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeApp(t, running) })
	return running
}
