package locks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"seckill/repository"
	"seckill/service"
	"seckill/service/idgen"
	"seckill/service/lock"
)

// sale is a sale whose buyers lost their locks all the time.
type sale struct {
	stock, sold int64
	broken      int64 // locks that were deleted
	audit       service.Audit
}

func (s *sale) ok() bool { return s.broken > 0 && s.sold == s.stock && s.audit.OK }

// The sale has twice as many buyers as units; each sends its request several times at once.
const stock, buyers, copies = 50, 100, 4

// sellWhileBreaking sells a voucher while another process deletes the buyers' locks as fast as it can.
func (s subject) sellWhileBreaking(ctx context.Context, db *repository.DB, log *slog.Logger) (result sale, err error) {
	locker, err := s.open()
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, locker.Close()) }()
	breaker, err := s.open()
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, breaker.Close()) }()
	ids, err := idgen.NewSnowflake(ctx, db.WorkerLeases())
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, ids.Close(context.WithoutCancel(ctx))) }()
	shop := service.New(service.Config{
		Orders: repository.NewOrders(db), Vouchers: repository.NewVouchers(db), IDs: ids, Log: log,
		Locker: lock.Bypass(locker, lock.BypassOptions{Timeout: 2 * time.Second}), // as the shop does
	})
	now := time.Now()
	voucher, err := shop.CreateVoucher(ctx, service.NewVoucher{
		Title: "locks", Stock: stock, UserLimit: 1, PayWithin: time.Hour, StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour),
	})
	if err != nil {
		return result, err
	}
	stop := breakLocks(ctx, breaker, voucher.ID)
	result.stock, result.sold = stock, sell(ctx, shop, voucher.ID)
	result.broken = stop()
	if err := shop.Close(ctx); err != nil {
		return result, err
	}
	result.audit, err = db.Audit(ctx, repository.AuditOptions{})
	return result, err
}

// sell lets all buyers come at once, and returns the number of orders that were placed.
func sell(ctx context.Context, shop *service.Shop, voucher idgen.ID) int64 {
	var sold atomic.Int64
	var all sync.WaitGroup
	for n := range buyers * copies {
		all.Go(func() {
			request := service.PlaceRequest{VoucherID: voucher, UserID: service.UserID(n/copies + 1)}
			if _, replayed, err := shop.PlaceOrder(ctx, request); err == nil && !replayed {
				sold.Add(1)
			}
		})
	}
	all.Wait()
	return sold.Load()
}

// breakLocks deletes the locks of one buyer after the other until stop is called, which returns how many were deleted.
func breakLocks(ctx context.Context, breaker breakable, voucher idgen.ID) (stop func() int64) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan int64)
	go func() {
		broken := int64(0)
		for user := 0; ctx.Err() == nil; user = (user + 1) % buyers {
			if breaker.Break(ctx, fmt.Sprintf("lock:voucher:%d:user:%d", voucher, user+1)) == nil {
				broken++
			}
		}
		done <- broken
	}()
	return func() int64 {
		cancel()
		return <-done
	}
}
