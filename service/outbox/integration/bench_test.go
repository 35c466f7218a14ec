package integration_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"seckill/repository"
	"seckill/repository/repotest/dbserver"
	"seckill/repository/repotest/dbtest"
	"seckill/service"
	"seckill/service/outbox"
	"seckill/service/outbox/brokertest"
)

// Run the benchmarks once each with
//
//	go test -run NONE -bench . -benchtime 1x ./service/outbox/integration

// benchmark opens a fresh database on the shared MySQL.
func benchmark(b *testing.B) *database {
	b.Helper()
	dsn := os.Getenv(dbserver.Variable(dbserver.MySQL))
	if dsn == "" {
		b.Skip(dbserver.Variable(dbserver.MySQL) + " is not set; go run ./cmd/test --keep-servers prints it")
	}
	admin, err := sql.Open("mysql", dsn)
	if err != nil {
		b.Fatal(err)
	}
	name := brokertest.Topic()
	if _, err := admin.Exec("CREATE DATABASE " + name + " CHARACTER SET utf8mb4"); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if _, err := admin.Exec("DROP DATABASE " + name); err != nil {
			b.Error(err)
		}
		_ = admin.Close()
	})
	return open(b, dbtest.Database{Engine: string(dbserver.MySQL), DSN: dsn + name})
}

// discard subscribes, so that the broker has somewhere to deliver.
func discard(b *testing.B, broker outbox.Subscriber) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- broker.Subscribe(ctx, service.PointsConsumer, func(context.Context, outbox.Event) error { return nil })
	}()
	b.Cleanup(func() { cancel(); <-ended })
}

// BenchmarkDrain empties a backlog, with one relay and with two.
func BenchmarkDrain(b *testing.B) {
	const events = 40_000
	for _, target := range []target{inprocTarget(), redisTarget(b), rabbitTarget(b)} {
		for _, relays := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/relays=%d", target.name, relays), func(b *testing.B) {
				d := benchmark(b)
				broker := target.open(b, brokertest.Topic())
				discard(b, broker)
				b.StopTimer()
				for range b.N {
					b.StopTimer()
					if _, err := d.sql.Exec("TRUNCATE outbox_event"); err != nil {
						b.Fatal(err)
					}
					for first := int64(1); first <= events; first += 500 {
						if err := d.commit(b.Context(), first, first+499); err != nil {
							b.Fatal(err)
						}
					}
					b.StartTimer()
					drain(b, d, broker, relays, events)
				}
				b.ReportMetric(float64(events*b.N)/b.Elapsed().Seconds(), "events/s")
			})
		}
	}
}

// sentCount counts what was marked as sent.
type sentCount struct {
	outbox.NoObserver
	n    atomic.Int64
	want int64
	done chan struct{}
}

func (s *sentCount) Sent(outbox.Event, time.Duration) {
	if s.n.Add(1) == s.want {
		close(s.done)
	}
}

func drain(b *testing.B, d *database, broker outbox.Publisher, relays int, events int64) {
	count := &sentCount{want: events, done: make(chan struct{})}
	for range relays {
		_, stop := relay(b, outbox.Config{Store: repository.NewOutbox(d.DB), Broker: broker, Observer: count})
		defer stop()
	}
	select {
	case <-count.done:
	case <-time.After(2 * time.Minute):
		b.Fatalf("%d of %d events were sent", count.n.Load(), events)
	}
}

// BenchmarkIdleLatency measures the time from commit to confirmation of a single event in an idle shop, with its wake-up
// and by polling alone.
func BenchmarkIdleLatency(b *testing.B) {
	target := rabbitTarget(b)
	for _, wake := range []bool{true, false} {
		b.Run(fmt.Sprintf("rabbitmq/wake=%v", wake), func(b *testing.B) {
			d := benchmark(b)
			broker := target.open(b, brokertest.Topic())
			discard(b, broker)
			confirmed := make(signalled, 1)
			r, _ := relay(b, outbox.Config{Store: d.outbox, Broker: signalling{broker, confirmed}})
			var took []time.Duration
			n := 100
			if !wake {
				n = 10
			}
			for id := int64(1); id <= int64(n); id++ {
				if err := d.commit(b.Context(), id, id); err != nil {
					b.Fatal(err)
				}
				committed := time.Now()
				if wake {
					r.Wake()
				}
				<-confirmed
				took = append(took, time.Since(committed))
				time.Sleep(150 * time.Millisecond) // fewer commits than the busy rate
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "p99-ms")
		})
	}
}

type signalled chan struct{}

// signalling signals each confirmation of the broker.
type signalling struct {
	outbox.Publisher
	confirmed signalled
}

func (s signalling) Publish(ctx context.Context, events []outbox.Event) []error {
	results := s.Publisher.Publish(ctx, events)
	for _, err := range results {
		if err == nil {
			s.confirmed <- struct{}{}
		}
	}
	return results
}
