package shop

import (
	"context"

	"seckill/service"
	"seckill/service/idgen"
)

// What follows is in the API and not in this peer: it sells, and that is what is measured. Each answers 404.

// PayOrder is not here.
func (s *Shop) PayOrder(context.Context, service.UserID, idgen.ID, string) (service.Order, error) {
	return service.Order{}, service.ErrNotFound
}

// CancelOrder is not here.
func (s *Shop) CancelOrder(context.Context, service.UserID, idgen.ID) (service.Order, error) {
	return service.Order{}, service.ErrNotFound
}

// Order is not here.
func (s *Shop) Order(context.Context, service.UserID, idgen.ID) (service.Order, error) {
	return service.Order{}, service.ErrNotFound
}

// Orders is not here.
func (s *Shop) Orders(context.Context, service.UserID, idgen.ID, int) ([]service.Order, error) {
	return nil, service.ErrNotFound
}

// Vouchers is not here.
func (s *Shop) Vouchers(context.Context, idgen.ID, int) ([]service.Voucher, error) {
	return nil, service.ErrNotFound
}

// ChangeVoucher is not here.
func (s *Shop) ChangeVoucher(context.Context, idgen.ID, service.VoucherChange) (service.Voucher, error) {
	return service.Voucher{}, service.ErrNotFound
}

// AddStock is not here.
func (s *Shop) AddStock(context.Context, idgen.ID, int64, string) (service.Voucher, error) {
	return service.Voucher{}, service.ErrNotFound
}

// EndSale is not here.
func (s *Shop) EndSale(context.Context, idgen.ID) (service.Voucher, error) {
	return service.Voucher{}, service.ErrNotFound
}
