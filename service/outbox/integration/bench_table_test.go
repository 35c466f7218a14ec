package integration_test

import (
	"context"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"seckill/repository"
	"seckill/service"
	"seckill/service/idgen"
	"seckill/service/outbox"
)

// BenchmarkClaim takes batches of 100 beside a number of rows that were sent long ago: SECKILL_BENCH_SENT_ROWS, default
// 200,000.
func BenchmarkClaim(b *testing.B) {
	rows := 200_000
	if s := os.Getenv("SECKILL_BENCH_SENT_ROWS"); s != "" {
		var err error
		if rows, err = strconv.Atoi(s); err != nil {
			b.Fatal(err)
		}
	}
	empty, full := benchmark(b), benchmark(b)
	fill(b, full, rows)
	var took [2][]time.Duration
	for round := range int64(300) { // alternately, so that both run on the same machine load
		for i, d := range []*database{empty, full} {
			first := int64(1)<<40 + round*100
			if err := d.commit(b.Context(), first, first+99); err != nil {
				b.Fatal(err)
			}
			start := time.Now()
			batch, err := d.outbox.Claim(b.Context(), outbox.Claim{Limit: 100, Lease: time.Minute})
			if err != nil || len(batch.Events) != 100 {
				b.Fatalf("claimed %d (%v)", len(batch.Events), err)
			}
			took[i] = append(took[i], time.Since(start))
		}
	}
	median := func(i int) float64 {
		slices.Sort(took[i])
		return float64(took[i][len(took[i])/2].Microseconds()) / 1000
	}
	b.ReportMetric(median(0), "empty-p50-ms")
	b.ReportMetric(median(1), "full-p50-ms")
	b.ReportMetric(median(1)/median(0), "ratio")
}

// fill inserts rows that were sent a while ago, doubling what is there.
func fill(b *testing.B, d *database, rows int) {
	b.Helper()
	if rows == 0 {
		return
	}
	if err := d.commit(b.Context(), 1, 1000); err != nil {
		b.Fatal(err)
	}
	if _, err := d.sql.Exec("UPDATE outbox_event SET status = 1, next_retry_time = UTC_TIMESTAMP(3) - INTERVAL 1 HOUR"); err != nil {
		b.Fatal(err)
	}
	for have := 1000; have < rows; {
		n := min(have, rows-have, 250_000)
		_, err := d.sql.Exec(`INSERT INTO outbox_event SELECT event_id + ?, biz_type, biz_id, version, payload, 1, 0,
			UTC_TIMESTAMP(3) - INTERVAL 1 HOUR, NULL, created_at, updated_at FROM outbox_event ORDER BY event_id LIMIT ?`, have, n)
		if err != nil {
			b.Fatal(err)
		}
		have += n
	}
}

// BenchmarkOrderPath places orders with and without a running relay, alternately, and reports what the relay costs. Two
// goroutines place batches of 100 as fast as they can; the relay gets the rest of the machine.
func BenchmarkOrderPath(b *testing.B) {
	d := benchmark(b)
	broker := inprocTarget().open(b, "")
	discard(b, broker)
	voucher := idgen.ID(1)
	err := repository.NewVouchers(d.DB).Create(b.Context(), voucher, service.NewVoucher{
		Title: "benchmark", PriceCents: 1000, Stock: 10_000_000, UserLimit: 1, PayWithin: time.Hour,
		StartsAt: time.Now().Add(-time.Hour), EndsAt: time.Now().Add(time.Hour),
	})
	if err != nil {
		b.Fatal(err)
	}
	place := placer(b, d, voucher)
	place(time.Second) // warm
	var with, without float64
	for range 4 {
		without += place(3 * time.Second)
		r, stop := relay(b, outbox.Config{Store: d.outbox, Broker: broker})
		wake := make(chan struct{})
		var waking sync.WaitGroup
		waking.Go(func() { // as each commit does
			for {
				select {
				case <-wake:
					return
				default:
					r.Wake()
					time.Sleep(time.Millisecond)
				}
			}
		})
		with += place(3 * time.Second)
		close(wake)
		waking.Wait()
		stop()
	}
	b.ReportMetric(without/4, "orders/s-alone")
	b.ReportMetric(with/4, "orders/s-with-relay")
	b.ReportMetric(with/without, "ratio")
}

// placer returns a function that places orders for a while and says how many a second.
func placer(b *testing.B, d *database, voucher idgen.ID) func(time.Duration) float64 {
	var last atomic.Int64
	last.Store(1000)
	orders := repository.NewOrders(d.DB)
	return func(during time.Duration) float64 {
		var placed atomic.Int64
		var placing sync.WaitGroup
		start := time.Now()
		for range 2 {
			placing.Go(func() {
				for time.Since(start) < during {
					batch := make([]*service.Placement, 100)
					for i := range batch {
						id := last.Add(2)
						batch[i] = &service.Placement{EventID: idgen.ID(id + 1), PayWithin: time.Hour, Order: service.Order{
							ID: idgen.ID(id), VoucherID: voucher, UserID: service.UserID(id), RequestID: strconv.FormatInt(id, 10), PriceCents: 1000,
						}}
					}
					orders.Place(b.Context(), voucher, batch)
					for _, p := range batch {
						if p.Err != nil {
							b.Error(p.Err)
							return
						}
					}
					placed.Add(int64(len(batch)))
				}
			})
		}
		placing.Wait()
		return float64(placed.Load()) / time.Since(start).Seconds()
	}
}

// BenchmarkPurge purges 200,000 rows while transactions insert, and reports what that costs them.
func BenchmarkPurge(b *testing.B) {
	d := benchmark(b)
	fill(b, d, 200_000)
	purge := (&outbox.Jobs{Maintenance: d.outbox, PurgeAfter: time.Minute}).List()[2]
	next := int64(1) << 40
	insert := func(ctx context.Context) float64 {
		start, n := time.Now(), 0
		for ctx.Err() == nil {
			if err := d.commit(b.Context(), next, next+9); err != nil {
				b.Fatal(err)
			}
			next += 10
			n++
		}
		return float64(n) / time.Since(start).Seconds()
	}
	alone := func() float64 {
		ctx, cancel := context.WithTimeout(b.Context(), 4*time.Second)
		defer cancel()
		return insert(ctx)
	}
	before := alone()
	ctx, done := context.WithCancel(b.Context())
	var purging sync.WaitGroup
	var took time.Duration
	purging.Go(func() {
		start := time.Now()
		if said, err := purge.Run(b.Context()); err != nil || said != "200000 events purged" {
			b.Errorf("%s (%v)", said, err)
		}
		took = time.Since(start)
		done()
	})
	during := insert(ctx)
	purging.Wait()
	after := alone()
	b.ReportMetric(took.Seconds(), "purge-s")
	b.ReportMetric((before+after)/2, "inserts/s-alone")
	b.ReportMetric(during, "inserts/s-purging")
	b.ReportMetric(2*during/(before+after), "ratio")
}
