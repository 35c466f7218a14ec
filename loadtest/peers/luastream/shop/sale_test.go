package shop_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/repository/repotest/dbtest"
	"seckill/repository/repotest/redistest"
	"seckill/service"
)

// As long as nothing breaks, the pattern sells every unit once, and the writer brings every order to the database.
func TestSale(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		const units, buyers, repeats = 50, 200, 3
		s := open(t, redistest.Start(t).Addr, db)
		voucher := create(t, s, units)
		var mu sync.Mutex
		var wait sync.WaitGroup
		answers := map[service.Code]int{}
		for i := range buyers * repeats {
			wait.Go(func() {
				_, _, err := s.PlaceOrder(t.Context(), service.PlaceRequest{VoucherID: voucher, UserID: service.UserID(i%buyers + 1)})
				mu.Lock()
				defer mu.Unlock()
				answers[service.CodeOf(err)]++
			})
		}
		wait.Wait()
		if answers[""] != units || answers[""]+answers[service.CodeSoldOut]+answers[service.CodeAlreadyOrdered] != buyers*repeats {
			t.Errorf("answers: %v", answers)
		}
		verdict, err := s.Audit(t.Context())
		if err != nil || !verdict.OK {
			t.Errorf("audit: %+v %v", verdict, err)
		}
		if got := stats(t, s, voucher); got.Acknowledged != units || got.Durable != units || got.Refused != 0 {
			t.Errorf("statistics: %+v", got)
		}
	})
}

func TestRefusals(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		server := redistest.Start(t)
		s := open(t, server.Addr, db)
		voucher := create(t, s, 1)
		buy(t, s, voucher, 1, 1)
		place := func(req service.PlaceRequest) error {
			_, _, err := s.PlaceOrder(t.Context(), req)
			return err
		}
		if err := place(service.PlaceRequest{VoucherID: voucher, UserID: 1}); service.CodeOf(err) != service.CodeAlreadyOrdered {
			t.Errorf("the same user again: %v", err)
		}
		if err := place(service.PlaceRequest{VoucherID: voucher, UserID: 2}); !errors.Is(err, service.ErrSoldOut) {
			t.Errorf("nothing left: %v", err)
		}
		if err := place(service.PlaceRequest{VoucherID: voucher + 1, UserID: 2}); !errors.Is(err, service.ErrNotFound) {
			t.Errorf("no such voucher: %v", err)
		}
		if _, err := s.CreateVoucher(t.Context(), service.NewVoucher{UserLimit: 2}); service.CodeOf(err) != service.CodeInvalid {
			t.Errorf("two units a user: %v", err)
		}
		drain(t, s)
		if err := server.Client().FlushAll(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		if err := place(service.PlaceRequest{VoucherID: voucher, UserID: 3}); !errors.Is(err, service.ErrUnavailable) {
			t.Errorf("Redis has forgotten the voucher: %v", err)
		}
		server.Kill()
		if err := place(service.PlaceRequest{VoucherID: voucher, UserID: 4, RequestID: "four"}); !errors.Is(err, service.ErrUnknown) {
			t.Errorf("Redis is gone: %v", err)
		}
	})
}

// A writer that died after it took orders from the stream left them to its successor; one that died after the commit
// left them to be written a second time, which must not take a second unit.
func TestWriterTakesUpWhatWasDelivered(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		server := redistest.Start(t)
		client := server.Client()
		s := open(t, server.Addr, db)
		voucher := create(t, s, 10)
		orders := buy(t, s, voucher, 1, 3)
		drain(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		again := map[string]any{"v": voucher.String(), "u": "3", "o": orders[2].String()}
		unseen := map[string]any{"v": voucher.String(), "u": "4", "o": "4"}
		for _, values := range []map[string]any{again, unseen} {
			if err := client.XAdd(t.Context(), &redis.XAddArgs{Stream: "luastream:orders", Values: values}).Err(); err != nil {
				t.Fatal(err)
			}
		}
		taken, err := client.XReadGroup(t.Context(), &redis.XReadGroupArgs{
			Group: "writers", Consumer: "writer", Streams: []string{"luastream:orders", ">"}, Block: time.Second,
		}).Result()
		if err != nil || len(taken) != 1 || len(taken[0].Messages) != 2 {
			t.Fatalf("the dead writer got %v %v, want 2 entries", taken, err)
		}
		s = open(t, server.Addr, db)
		drain(t, s)
		if stock, count := counted(t, db, voucher); stock != 6 || count != 4 {
			t.Errorf("%d units and %d orders, want 6 and 4", stock, count)
		}
	})
}

// Orders that wait for different vouchers are written from the same stream.
func TestManyVouchers(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db dbtest.Database) {
		s := open(t, redistest.Start(t).Addr, db)
		var wait sync.WaitGroup
		var failed atomic.Int64
		for range 5 {
			voucher := create(t, s, 20)
			for user := range 20 {
				wait.Go(func() {
					if _, _, err := s.PlaceOrder(t.Context(), service.PlaceRequest{VoucherID: voucher, UserID: service.UserID(user + 1)}); err != nil {
						failed.Add(1)
					}
				})
			}
		}
		wait.Wait()
		if verdict, err := s.Audit(t.Context()); err != nil || !verdict.OK || failed.Load() > 0 {
			t.Errorf("%+v %v, %d orders failed", verdict, err, failed.Load())
		}
	})
}
