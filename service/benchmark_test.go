package service

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"seckill/service/idgen"
	"seckill/service/lock"
)

// The hot path without its servers: the CPU that the shop itself needs for an order.
//
//	go test -run '^$' -bench . ./service/

// instantStore accepts every order and stores none.
type instantStore struct {
	OrderStore
	VoucherStore
	voucher Voucher
	commit  time.Duration
}

func (f *instantStore) Place(context.Context, idgen.ID, []*Placement) {
	if f.commit > 0 {
		time.Sleep(f.commit)
	}
}

func (f *instantStore) Voucher(context.Context, idgen.ID) (Voucher, error) {
	v := f.voucher
	v.ServerTime = time.Now()
	return v, nil
}

func benchmarkShop(b *testing.B, commit time.Duration) *Shop {
	now := time.Now()
	store := &instantStore{commit: commit, voucher: Voucher{ID: voucherID, PriceCents: 1, PayWithin: time.Minute, Terms: Terms{
		Total: 1, Stock: 1, UserLimit: 1, StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour),
	}}}
	s := New(Config{Orders: store, Vouchers: store, Locker: lock.None(), IDs: &countedIDs{}, Log: slog.New(slog.DiscardHandler)})
	b.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

func BenchmarkPlaceOrder(b *testing.B) {
	s := benchmarkShop(b, 0)
	var users atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(128)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := buy(s, UserID(users.Add(1))); err != nil {
				b.Error(err)
			}
		}
	})
}

func BenchmarkSoldOutRefusal(b *testing.B) {
	store := newFakeStore()
	s := soldOut(b, store)
	var users atomic.Int64
	users.Store(1000)
	before := store.terms.Load()
	b.ReportAllocs()
	b.SetParallelism(512) // a refusal waits for the next shared read
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if err := buy(s, UserID(users.Add(1))); CodeOf(err) != CodeSoldOut {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(store.terms.Load()-before)/float64(b.N), "reads/op")
}

// BenchmarkCommitter measures the cost of queue and batch, and how many orders share a commit.
func BenchmarkCommitter(b *testing.B) {
	for _, clients := range []int{1, 256} {
		for _, commit := range []time.Duration{0, time.Millisecond} {
			b.Run(fmt.Sprintf("clients=%d/commit=%v", clients, commit), func(b *testing.B) {
				s := benchmarkShop(b, commit)
				sale, _, err := s.sale(context.Background(), voucherID)
				wantNoError(b, err)
				todo := make(chan struct{}, clients)
				b.ReportAllocs()
				b.ResetTimer()
				go func() {
					for range b.N {
						todo <- struct{}{}
					}
					close(todo)
				}()
				done := make(chan error, clients)
				for range clients {
					go func() {
						var failed error
						for range todo {
							if err := s.commits.submit(context.Background(), sale, &Placement{}); err != nil {
								failed = err
							}
						}
						done <- failed
					}()
				}
				for range clients {
					wantNoError(b, <-done)
				}
			})
		}
	}
}
