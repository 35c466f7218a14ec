package service

import (
	"context"

	"seckill/service/idgen"
)

// MaxPage is the most rows that one page of a list holds.
const MaxPage = 100

// Order returns an order of the user; ErrNotFound also if it is somebody else's.
func (s *Shop) Order(ctx context.Context, user UserID, id idgen.ID) (Order, error) {
	o, err := s.cfg.Orders.Order(ctx, id)
	if err == nil && o.UserID != user {
		return Order{}, ErrNotFound
	}
	return o, err
}

// Orders returns a page of the user's orders, newest first: those with ids below before, or from the newest on if
// before is 0. There are more pages as long as a page is full.
func (s *Shop) Orders(ctx context.Context, user UserID, before idgen.ID, limit int) ([]Order, error) {
	return s.cfg.Orders.Orders(ctx, user, before, max(1, min(limit, MaxPage)))
}

// Voucher returns a voucher with its stock as it is now.
func (s *Shop) Voucher(ctx context.Context, id idgen.ID) (Voucher, error) {
	return s.cfg.Vouchers.Voucher(ctx, id)
}

// Vouchers returns a page of vouchers, newest first, in the manner of Orders.
func (s *Shop) Vouchers(ctx context.Context, before idgen.ID, limit int) ([]Voucher, error) {
	return s.cfg.Vouchers.Vouchers(ctx, before, max(1, min(limit, MaxPage)))
}
