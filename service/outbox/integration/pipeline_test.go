// Package integration_test tests the outbox from commit to effect, with real databases, real brokers, and the relay and
// the consumer that the shop runs.
package integration_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // the tests' own connections

	"github.com/redis/go-redis/v9"

	"seckill/handler/consumer"
	"seckill/repository"
	"seckill/repository/broker/inproc"
	"seckill/repository/broker/kafka"
	"seckill/repository/broker/rabbitmq"
	"seckill/repository/broker/redisstream"
	"seckill/repository/repotest/brokerserver"
	"seckill/repository/repotest/dbtest"
	"seckill/repository/repotest/redistest"
	"seckill/service"
	"seckill/service/idgen"
	"seckill/service/outbox"
	"seckill/service/outbox/brokertest"
)

// database is a migrated database; sql is the test's own access to it.
type database struct {
	*repository.DB
	outbox *repository.Outbox
	sql    *sql.DB
}

func open(t testing.TB, target dbtest.Database) *database {
	t.Helper()
	db, err := repository.OpenMySQL(context.Background(), target.DSN, repository.PoolOptions{MaxOpen: 64}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.Migrate(context.Background()); err != nil {
		t.Fatal(err)
	}
	own, err := sql.Open("mysql", target.DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = own.Close() })
	return &database{DB: db, outbox: repository.NewOutbox(db), sql: own}
}

// commit inserts the events from first to last, as a transaction of orders does.
func (d *database) commit(ctx context.Context, first, last int64) error {
	var rows []string
	var args []any
	for id := first; id <= last; id++ {
		payload, err := json.Marshal(service.OrderEvent{
			Type: service.OrderPaid, OrderID: idgen.ID(id), VoucherID: 1, UserID: 1, Status: "paid", Version: 2, PriceCents: 1000,
		})
		if err != nil {
			return err
		}
		rows = append(rows, "(?, 'ORDER_PAID', ?, 2, ?, UTC_TIMESTAMP(3), UTC_TIMESTAMP(3), UTC_TIMESTAMP(3))")
		args = append(args, id, id, string(payload))
	}
	_, err := d.sql.ExecContext(ctx, `INSERT INTO outbox_event (event_id, biz_type, biz_id, version, payload, next_retry_time, created_at, updated_at)
		VALUES `+strings.Join(rows, ","), args...)
	return err
}

func (d *database) count(t testing.TB, what string) (n int64) {
	t.Helper()
	if err := d.sql.QueryRowContext(context.Background(), "SELECT COUNT(*) FROM "+what).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// relay runs a relay until the test ends, or stop is called.
func relay(t testing.TB, cfg outbox.Config) (r *outbox.Relay, stop func()) {
	t.Helper()
	r = outbox.NewRelay(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(stop)
	return r, stop
}

// points runs the points consumer until the test ends.
func points(t testing.TB, d *database, b outbox.Subscriber) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- b.Subscribe(ctx, service.PointsConsumer, consumer.Points(repository.NewConsumerStore(d.DB), consumer.NoObserver{}))
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("consumer: %v", err)
		}
	})
}

// waitForRows polls until the query counts at least want rows.
func (d *database) waitForRows(t testing.TB, what string, want int64) {
	t.Helper()
	for start := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		n := d.count(t, what)
		if n >= want {
			return
		}
		if time.Since(start) > time.Minute {
			t.Fatalf("%d rows of %s after a minute, want %d", n, what, want)
		}
	}
}

// waitForEffects waits until every event has taken effect, and checks that there are no further effects.
func waitForEffects(t testing.TB, d *database, want int64) {
	t.Helper()
	d.waitForRows(t, "points_entry", want)
	if n := d.count(t, "points_entry"); n != want {
		t.Fatalf("%d effects of %d events", n, want)
	}
}

// target is a broker and its server, which is nil if it has none.
type target struct {
	name   string
	server brokertest.Server
	open   func(t testing.TB, topic string) outbox.Broker
}

func closed(t testing.TB, b outbox.Broker, err error) outbox.Broker {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	return b
}

type redisServer struct{ *redistest.Server }

func (s redisServer) Stop(*testing.T)   { s.Kill() }
func (s redisServer) Start(*testing.T)  { s.Restart() }
func (s redisServer) Freeze(*testing.T) { s.Pause() }
func (s redisServer) Thaw(*testing.T)   { s.Resume() }

func inprocTarget() target {
	return target{name: "inproc", open: func(t testing.TB, _ string) outbox.Broker {
		return closed(t, inproc.New(inproc.Options{Groups: []string{service.PointsConsumer}}), nil)
	}}
}

func redisTarget(t testing.TB) target {
	s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	return target{"redis", redisServer{s}, func(t testing.TB, topic string) outbox.Broker {
		client := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1, ContextTimeoutEnabled: true, DialerRetries: 1})
		t.Cleanup(func() { _ = client.Close() })
		b, err := redisstream.New(client, redisstream.Options{Stream: topic, Groups: []string{service.PointsConsumer}, ClaimAfter: 5 * time.Second})
		return closed(t, b, err)
	}}
}

func rabbitTarget(t testing.TB) target {
	s := brokerserver.RabbitMQ(t)
	return target{"rabbitmq", s, func(t testing.TB, topic string) outbox.Broker {
		b, err := rabbitmq.New(rabbitmq.Options{URL: s.URL() + "?heartbeat=1", Exchange: topic, Groups: []string{service.PointsConsumer}})
		return closed(t, b, err)
	}}
}

// kafkaTarget returns false if the machine cannot run Kafka.
func kafkaTarget(t testing.TB) (target, bool) {
	s, err := brokerserver.Kafka(t)
	if err != nil {
		t.Logf("skipping Kafka: %v", err)
		return target{}, false
	}
	return target{"kafka", s, func(t testing.TB, topic string) outbox.Broker {
		b, err := kafka.New(kafka.Options{Seeds: []string{s.Addr}, Topic: topic})
		return closed(t, b, err)
	}}, true
}

// While a broker is unavailable under load, no event is lost, none takes effect twice and none is charged an attempt. When
// the broker is back, everything is sent in the time that the backlog needs.
func TestOutbox_BrokerUnavailableUnderLoad(t *testing.T) {
	targets := []target{redisTarget(t), rabbitTarget(t)}
	if kafka, ok := kafkaTarget(t); ok {
		targets = append(targets, kafka)
	}
	for _, target := range targets {
		t.Run(target.name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, db dbtest.Database) { brokerUnavailable(t, open(t, db), target) })
		})
	}
}

func brokerUnavailable(t *testing.T, d *database, target target) {
	b := target.open(t, brokertest.Topic())
	points(t, d, b)
	r, _ := relay(t, outbox.Config{Store: d.outbox, Broker: b, Lease: 9 * time.Second})
	enough := make(chan struct{})
	var events int64
	var inserting sync.WaitGroup
	inserting.Go(func() {
		for ; ; events += 10 {
			select {
			case <-enough:
				return
			case <-time.After(30 * time.Millisecond):
			}
			if err := d.commit(t.Context(), events+1, events+10); err != nil {
				t.Error(err)
				return
			}
			r.Wake()
		}
	})
	d.waitForRows(t, "outbox_event WHERE status = 1", 100)
	target.server.Stop(t)
	d.waitForRows(t, "outbox_event WHERE status = 0", 200) // the fault has taken effect: the relay would send them
	target.server.Start(t)
	close(enough)
	inserting.Wait()
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	start := time.Now()
	if left, err := outbox.WaitEmpty(ctx, d.outbox); err != nil || left != (outbox.Backlog{}) {
		t.Errorf("left %+v (%v)", left, err)
	}
	t.Logf("%d events were sent %v after the broker was back", events, time.Since(start).Round(time.Millisecond))
	waitForEffects(t, d, events)
	if n := d.count(t, "outbox_event WHERE retry_count > 0"); n != 0 {
		t.Errorf("%d events were charged an attempt", n)
	}
	if n := d.count(t, "(SELECT 1 FROM points_entry GROUP BY order_id) AS orders"); n != events {
		t.Errorf("%d orders have an effect, want %d with one each", n, events)
	}
}

// The same event is published a hundred times in parallel.
func TestConsumer_RepeatedEventHasOneEffect(t *testing.T) {
	for _, target := range []target{inprocTarget(), redisTarget(t)} {
		t.Run(target.name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
				d := open(t, db)
				b := target.open(t, brokertest.Topic())
				points(t, d, b)
				if err := d.commit(t.Context(), 1, 1); err != nil {
					t.Fatal(err)
				}
				claimed, err := d.outbox.Claim(t.Context(), outbox.Claim{Limit: 1, Lease: time.Minute})
				if err != nil || len(claimed.Events) != 1 {
					t.Fatalf("claimed %v (%v)", claimed.Events, err)
				}
				var publishing sync.WaitGroup
				for range 100 {
					publishing.Go(func() {
						for err := outbox.ErrUnavailable; err != nil; { // until the subscription is there
							err = b.Publish(t.Context(), claimed.Events)[0]
						}
					})
				}
				publishing.Wait()
				waitForEffects(t, d, 1)
				if n := d.count(t, "consume_record"); n != 1 {
					t.Errorf("%d records", n)
				}
			})
		})
	}
}
