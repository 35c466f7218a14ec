package service

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"seckill/service/idgen"
)

// sale is what one instance knows about one voucher: a copy of it that is a moment old, whether it was seen to be sold
// out, and the orders that wait to be committed.
type sale struct {
	id       idgen.ID
	vouchers VoucherStore
	orders   OrderStore
	ttl      time.Duration

	copy    atomic.Pointer[voucherCopy]
	refresh chan struct{} // holds a token while somebody reads a new copy
	queue   queue
	soldOut latch
}

// voucherCopy is a voucher and the local, monotonic time at which it was read.
type voucherCopy struct {
	Voucher
	read time.Time
}

// now is the database's clock, carried on by this machine's monotonic one: an instance in another time zone, or with a
// wrong clock, opens the sale with all others.
func (c *voucherCopy) now() time.Time { return c.ServerTime.Add(time.Since(c.read)) }

func newSale(s *Shop, v Voucher) *sale {
	sale := &sale{
		id: v.ID, vouchers: s.cfg.Vouchers, orders: s.cfg.Orders, ttl: s.cfg.VoucherTTL,
		refresh: make(chan struct{}, 1),
	}
	sale.soldOut.look = sale.look
	sale.copy.Store(&voucherCopy{Voucher: v, read: time.Now()})
	return sale
}

// voucher returns a copy that is at most ttl old. One caller reads a new one, the others wait for it.
func (s *sale) voucher(ctx context.Context) (*voucherCopy, error) {
	if c := s.copy.Load(); time.Since(c.read) < s.ttl {
		return c, nil
	}
	select {
	case s.refresh <- struct{}{}:
		defer func() { <-s.refresh }()
	case <-ctx.Done():
		return nil, Unavailable(context.Cause(ctx))
	}
	if c := s.copy.Load(); time.Since(c.read) < s.ttl {
		return c, nil
	}
	v, err := s.vouchers.Voucher(ctx, s.id)
	if err != nil {
		return nil, err
	}
	c := &voucherCopy{Voucher: v, read: time.Now()}
	s.copy.Store(c)
	return c, nil
}

// forget makes the next caller read the voucher anew, after this instance changed it.
func (s *sale) forget() {
	c := *s.copy.Load()
	c.read = time.Now().Add(-s.ttl)
	c.ServerTime = c.ServerTime.Add(-s.ttl)
	s.copy.Store(&c)
}

// gate answers a request that needs no database transaction: before the start, after the end, and when the voucher is
// sold out. An order that stands already is found even then.
func (s *sale) gate(ctx context.Context, v *voucherCopy, req PlaceRequest) (answered bool, order Order, err error) {
	now := v.now()
	if now.Before(v.StartsAt) {
		return true, Order{}, v.Open(now)
	}
	if now.Before(v.EndsAt) && !s.soldOut.armed.Load() {
		return false, Order{}, nil
	}
	view, err := s.soldOut.check(ctx)
	if err != nil {
		return true, Order{}, err
	}
	refusal := view.refusal(&v.Voucher)
	if refusal == nil {
		return false, Order{}, nil
	}
	if !view.mayHaveOrdered(req.UserID) {
		return true, Order{}, refusal
	}
	order, err = s.orders.Standing(ctx, s.id, req.UserID, req.RequestID, view.terms.UserLimit)
	switch {
	case errors.Is(err, ErrNotFound):
		return true, Order{}, refusal
	case err != nil:
		return true, Order{}, err
	}
	return true, order, Verdict(&order, req.RequestID, req.VoucherID)
}

// Verdict explains an order that was there before: nil if it answers the very same request, else the refusal.
func Verdict(standing *Order, requestID string, voucherID idgen.ID) error {
	switch {
	case standing.RequestID != requestID:
		return &Error{Code: CodeAlreadyOrdered, Message: "you have ordered as many of this voucher as one user may", Order: standing}
	case standing.VoucherID != voucherID:
		return ErrKeyReused
	}
	return nil
}

// learn takes note of what a batch showed about the voucher.
func (s *sale) learn(batch []*Placement) {
	for _, p := range batch {
		switch {
		case p.Err == nil && !p.Replayed:
			s.soldOut.bought(p.Order.UserID)
		case errors.Is(p.Err, ErrSoldOut):
			s.soldOut.armed.Store(true)
		}
	}
}
