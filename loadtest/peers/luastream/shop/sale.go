package shop

import (
	"context"
	"sync/atomic"
	"time"

	"seckill/service"
	"seckill/service/idgen"
)

// sale is a voucher on this instance, and what was counted of it since the instance started. Title, price and window
// never change here.
type sale struct {
	voucher service.Voucher
	text    string   // the voucher's id, made once
	keys    []string // of place.lua

	acknowledged, durable, refused atomic.Int64
	firstAck, lastAck, lastDurable atomic.Int64 // Unix nanoseconds, 0: never
	waiting                        atomic.Int64 // acknowledged and not settled, at the last answer
}

func newSale(v service.Voucher) *sale {
	text := v.ID.String()
	return &sale{voucher: v, text: text, keys: []string{stockKey(text), "luastream:" + text + ":buyers", stream}}
}

func stockKey(voucher string) string { return "luastream:" + voucher + ":stock" }

// sale returns the voucher, from MySQL the first time.
func (s *Shop) sale(ctx context.Context, id idgen.ID) (*sale, error) {
	if found, ok := s.sales.Load(id); ok {
		return found.(*sale), nil
	}
	v, err := readVoucher(ctx, s.db, id)
	if err != nil {
		return nil, err
	}
	created, _ := s.sales.LoadOrStore(id, newSale(v))
	return created.(*sale), nil
}

// acknowledge counts an order that is about to be answered.
func (s *sale) acknowledge(at time.Time) {
	s.waiting.Store(s.acknowledged.Add(1) - s.durable.Load() - s.refused.Load())
	now := at.UnixNano()
	if s.firstAck.Load() == 0 {
		s.firstAck.CompareAndSwap(0, now)
	}
	s.lastAck.Store(now)
}

// settle counts orders that the database has, and those that it will never have.
func (s *sale) settle(durable, refused int64) {
	s.lastDurable.Store(time.Now().UnixNano())
	s.refused.Add(refused)
	s.durable.Add(durable)
}

// CreateVoucher puts a voucher on sale: first in MySQL, then its units in Redis.
func (s *Shop) CreateVoucher(ctx context.Context, n service.NewVoucher) (v service.Voucher, err error) {
	if n.UserLimit != 1 {
		return v, service.Invalid("user_limit", "must be 1: a set of buyers counts no further")
	}
	id, err := s.ids.Next(ctx)
	if err != nil {
		return v, service.Unavailable(err)
	}
	v = service.Voucher{
		ID: id, Title: n.Title, PriceCents: n.PriceCents, PayWithin: n.PayWithin, ServerTime: time.Now(),
		Terms: service.Terms{Total: n.Stock, Stock: n.Stock, UserLimit: 1, StartsAt: n.StartsAt, EndsAt: n.EndsAt},
	}
	if err := insertVoucher(ctx, s.db, &v); err != nil {
		return v, service.Unavailable(err)
	}
	if err := s.redis.Set(ctx, stockKey(id.String()), n.Stock, 0).Err(); err != nil {
		return v, service.Unavailable(err)
	}
	s.sales.Store(id, newSale(v))
	return v, nil
}

// Voucher reads a voucher with the stock that buyers meet, which is that of Redis.
func (s *Shop) Voucher(ctx context.Context, id idgen.ID) (service.Voucher, error) {
	sale, err := s.sale(ctx, id)
	if err != nil {
		return service.Voucher{}, err
	}
	v := sale.voucher
	v.ServerTime = time.Now()
	if v.Stock, err = s.redis.Get(ctx, stockKey(sale.text)).Int64(); err != nil {
		return v, service.Unavailable(err)
	}
	return v, nil
}
