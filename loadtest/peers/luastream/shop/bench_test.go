package shop_test

import (
	"log/slog"
	"sync/atomic"
	"testing"

	"seckill/loadtest/peers/luastream/shop"
	"seckill/repository/repotest/dbtest"
	"seckill/repository/repotest/redistest"
	"seckill/service"
)

// BenchmarkPlaceOrder compares a round trip for each order with pipelines that concurrent orders share, 256 at a time,
// the writer running beside them.
func BenchmarkPlaceOrder(b *testing.B) {
	for name, plain := range map[string]bool{"plain": true, "shared": false} {
		b.Run(name, func(b *testing.B) {
			s, err := shop.Open(b.Context(), shop.Options{
				RedisAddr: redistest.Start(b).Addr, MySQLDSN: dbtest.Benchmark(b).DSN, Plain: plain,
			}, slog.New(slog.DiscardHandler))
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			voucher := create(b, s, service.MaxStock)
			var users atomic.Int64
			b.SetParallelism(128)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if _, _, err := s.PlaceOrder(b.Context(), service.PlaceRequest{VoucherID: voucher, UserID: service.UserID(users.Add(1))}); err != nil {
						b.Error(err)
					}
				}
			})
			b.StopTimer()
			drain(b, s)
		})
	}
}
