package service

import (
	"context"

	"seckill/service/idgen"
)

// Voucher returns a voucher with its current stock.
func (s *Shop) Voucher(ctx context.Context, id idgen.ID) (Voucher, error) {
	return s.cfg.Vouchers.Voucher(ctx, id)
}

// Vouchers returns a page of vouchers, newest first, as Orders does.
func (s *Shop) Vouchers(ctx context.Context, before idgen.ID, limit int) ([]Voucher, error) {
	return s.cfg.Vouchers.Vouchers(ctx, before, max(1, min(limit, MaxPage)))
}

// CreateVoucher puts a new voucher on sale.
func (s *Shop) CreateVoucher(ctx context.Context, v NewVoucher) (Voucher, error) {
	if err := v.validate(); err != nil {
		return Voucher{}, err
	}
	id, err := s.cfg.IDs.Next(ctx)
	if err != nil {
		return Voucher{}, Unavailable(err)
	}
	if err := s.cfg.Vouchers.Create(ctx, id, v); err != nil {
		return Voucher{}, err
	}
	return s.cfg.Vouchers.Voucher(ctx, id)
}

// ChangeVoucher changes title, price, window or limit. The guard uses the change at once, and so does this instance; other
// instances show it within Config.VoucherTTL.
func (s *Shop) ChangeVoucher(ctx context.Context, id idgen.ID, c VoucherChange) (Voucher, error) {
	if err := c.validate(); err != nil {
		return Voucher{}, err
	}
	return s.changeVoucher(ctx, id, func() error { return s.cfg.Vouchers.Change(ctx, id, c) })
}

// AddStock puts more units on sale, at any time. The same request id again changes nothing; it is refused if the number of
// units differs.
func (s *Shop) AddStock(ctx context.Context, id idgen.ID, units int64, requestID string) (Voucher, error) {
	if units < 1 || units > MaxStock {
		return Voucher{}, Invalid("units", "must be from 1 to %d", MaxStock)
	}
	if requestID == "" {
		own, err := s.cfg.IDs.Next(ctx)
		if err != nil {
			return Voucher{}, Unavailable(err)
		}
		requestID = own.String()
	}
	return s.changeVoucher(ctx, id, func() error { return s.cfg.Vouchers.AddStock(ctx, id, units, requestID) })
}

// EndSale ends the sale of a voucher now.
func (s *Shop) EndSale(ctx context.Context, id idgen.ID) (Voucher, error) {
	return s.changeVoucher(ctx, id, func() error { return s.cfg.Vouchers.End(ctx, id) })
}

func (s *Shop) changeVoucher(ctx context.Context, id idgen.ID, change func() error) (Voucher, error) {
	if err := change(); err != nil {
		return Voucher{}, err
	}
	if found, ok := s.sales.Load(id); ok {
		found.(*saleState).forget()
	}
	return s.cfg.Vouchers.Voucher(ctx, id)
}
