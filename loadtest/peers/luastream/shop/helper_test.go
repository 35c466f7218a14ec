package shop_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"
	"time"

	"seckill/loadtest/peers/luastream/shop"
	"seckill/repository/repotest/dbtest"
	"seckill/service"
	"seckill/service/idgen"
)

// open opens a shop that is closed with the test, unless it was before.
func open(t testing.TB, redisAddr string, db dbtest.Database) *shop.Shop {
	t.Helper()
	s, err := shop.Open(t.Context(), shop.Options{RedisAddr: redisAddr, MySQLDSN: db.DSN}, slog.New(slog.NewTextHandler(logOf{t}, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// logOf shows the shop's log where the test fails.
type logOf struct{ t testing.TB }

func (l logOf) Write(line []byte) (int, error) {
	l.t.Log(string(bytes.TrimSpace(line)))
	return len(line), nil
}

// create puts units on sale.
func create(t testing.TB, s *shop.Shop, units int64) idgen.ID {
	t.Helper()
	now := time.Now()
	v, err := s.CreateVoucher(t.Context(), service.NewVoucher{
		Title: "test", PriceCents: 100, Stock: units, UserLimit: 1, PayWithin: time.Minute,
		StartsAt: now.Add(-time.Minute), EndsAt: now.Add(time.Hour),
	})
	if err != nil {
		t.Fatal(err)
	}
	return v.ID
}

// buy lets the users first to last buy, and returns the orders that were acknowledged.
func buy(t testing.TB, s *shop.Shop, voucher idgen.ID, first, last int) []idgen.ID {
	t.Helper()
	var orders []idgen.ID
	for user := first; user <= last; user++ {
		order, _, err := s.PlaceOrder(t.Context(), service.PlaceRequest{VoucherID: voucher, UserID: service.UserID(user)})
		if err != nil {
			t.Fatalf("user %d: %v", user, err)
		}
		orders = append(orders, order.ID)
	}
	return orders
}

// drain waits until the stream is empty.
func drain(t testing.TB, s *shop.Shop) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := s.Drain(ctx); err != nil {
		t.Fatal(err)
	}
}

// stats returns what the shop says of a voucher.
func stats(t testing.TB, s *shop.Shop, voucher idgen.ID) shop.Stats {
	t.Helper()
	for _, found := range s.Stats() {
		if found.Voucher == voucher {
			return found
		}
	}
	t.Fatalf("no statistics of voucher %s", voucher)
	return shop.Stats{}
}
