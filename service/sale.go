package service

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
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

	gone func() // called when it could not be read: whoever asks again starts anew

	copy    atomic.Pointer[voucherCopy] // nil until the first is needed; set under mu
	mu      sync.Mutex
	reading *reading // under way; nil: none
	queue   queue
	soldOut latch
}

// voucherCopy is a voucher and the local, monotonic time at which its reading began.
type voucherCopy struct {
	Voucher
	read time.Time
}

// now is the database's clock, carried on by this machine's monotonic one: an instance in another time zone, or with a
// wrong clock, opens the sale with all others. It is ahead by what the reading took at most, and never behind: a gate
// that opens a little early asks the guard, one that opens late would refuse buyers for nothing.
func (c *voucherCopy) now() time.Time { return c.ServerTime.Add(time.Since(c.read)) }

// reading is one read of the voucher, for all who need a new copy.
type reading struct {
	done chan struct{}
	copy *voucherCopy
	err  error
}

func newSale(s *Shop, id idgen.ID) *sale {
	sale := &sale{id: id, vouchers: s.cfg.Vouchers, orders: s.cfg.Orders, ttl: s.cfg.VoucherTTL}
	sale.soldOut.look = sale.look
	sale.gone = func() { s.sales.CompareAndDelete(id, sale) }
	return sale
}

// voucher returns a copy that is at most ttl old. Who finds none shares a read with all others, and its failure.
func (s *sale) voucher(ctx context.Context) (*voucherCopy, error) {
	if c := s.copy.Load(); c != nil && time.Since(c.read) < s.ttl {
		return c, nil
	}
	s.mu.Lock()
	r := s.reading
	if r == nil {
		r = &reading{done: make(chan struct{})}
		s.reading = r
		go s.read(r)
	}
	s.mu.Unlock()
	select {
	case <-r.done:
		return r.copy, r.err
	case <-ctx.Done():
		return nil, Unavailable(context.Cause(ctx))
	}
}

// read reads a new copy. It is kept unless the voucher was changed meanwhile: it may be older than the change then.
func (s *sale) read(r *reading) {
	c := &voucherCopy{read: time.Now()}
	r.err = guarded(func() (err error) {
		ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
		defer cancel()
		c.Voucher, err = s.vouchers.Voucher(ctx, s.id)
		return err
	})
	if r.err == nil {
		r.copy = c
	}
	s.mu.Lock()
	if s.reading == r {
		s.reading = nil
		s.copy.Store(r.copy)
	}
	s.mu.Unlock()
	if r.err != nil {
		s.gone()
	}
	close(r.done)
}

// forget makes the next caller read the voucher anew, after this instance changed it.
func (s *sale) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.copy.Store(nil)
	s.reading = nil
}

// readTimeout bounds one read that callers share; they get ErrUnavailable then.
const readTimeout = 2 * time.Second

// guarded runs a read that callers share, on a goroutine that nobody recovers: a panic becomes their error.
func guarded(read func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = &Error{Code: CodeInternal, Message: "a read panicked", Err: fmt.Errorf("%v\n%s", cause, debug.Stack())}
		}
	}()
	return read()
}

// gate answers a request that needs no database transaction: before the start, after the end, and when the voucher is
// sold out. An order that stands already is found even then.
func (s *sale) gate(ctx context.Context, v *voucherCopy, req PlaceRequest) (answered bool, order Order, err error) {
	now := v.now()
	if now.Before(v.StartsAt) {
		current := v.Voucher
		current.ServerTime = now // buyers count down by it
		return true, Order{}, current.Open(now)
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
	standing, err := s.orders.Standing(ctx, s.id, req.UserID, req.RequestID, view.terms.UserLimit)
	switch {
	case errors.Is(err, ErrNotFound):
		return true, Order{}, refusal
	case err != nil:
		return true, Order{}, err
	}
	return true, standing, Verdict(&standing, req.RequestID, req.VoucherID)
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
