package service

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"seckill/service/idgen"
)

// saleState is what one instance knows about one voucher: a cached copy, whether it was sold out, and the orders that wait for
// a commit.
type saleState struct {
	id       idgen.ID
	vouchers VoucherStore
	orders   OrderStore
	ttl      time.Duration
	remove   func() // called when the voucher cannot be read: the next request starts anew

	cached  atomic.Pointer[cachedVoucher] // nil until it is needed; set under mu
	mu      sync.Mutex
	reading *sharedRead[*cachedVoucher] // in progress; nil: none

	soldOut soldOutGate
	queue   saleQueue
}

// cachedVoucher is a voucher and the local, monotonic time at which its read began.
type cachedVoucher struct {
	Voucher
	readAt time.Time
}

// now estimates the database's clock: its time at the read, plus the monotonic time since the read began. So all instances
// open the sale at the same time, whatever their zone and clock. The estimate is never behind, and ahead by at most the
// duration of the read. A gate that opens early is harmless, because the database refuses the order; a gate that opens
// late would refuse buyers of an open sale.
func (c *cachedVoucher) now() time.Time { return c.ServerTime.Add(time.Since(c.readAt)) }

func newSaleState(s *Shop, id idgen.ID) *saleState {
	sale := &saleState{id: id, vouchers: s.cfg.Vouchers, orders: s.cfg.Orders, ttl: s.cfg.VoucherTTL}
	sale.soldOut.read = sale.readStock
	sale.remove = func() { s.sales.CompareAndDelete(id, sale) }
	return sale
}

// voucher returns a copy that is at most ttl old. Concurrent misses share one read, and its error.
func (s *saleState) voucher(ctx context.Context) (*cachedVoucher, error) {
	if c := s.cached.Load(); c != nil && time.Since(c.readAt) < s.ttl {
		return c, nil
	}
	s.mu.Lock()
	r := s.reading
	if r == nil {
		r = newSharedRead[*cachedVoucher]()
		s.reading = r
		go s.read(r)
	}
	s.mu.Unlock()
	return r.wait(ctx)
}

// read reads the voucher. It does not cache it if the voucher was changed meanwhile: what it read may be older.
func (s *saleState) read(r *sharedRead[*cachedVoucher]) {
	r.run(func() (*cachedVoucher, error) {
		ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
		defer cancel()
		readAt := time.Now()
		v, err := s.vouchers.Voucher(ctx, s.id)
		return &cachedVoucher{Voucher: v, readAt: readAt}, err
	})
	s.mu.Lock()
	if s.reading == r {
		s.reading = nil
		s.cached.Store(r.value)
	}
	s.mu.Unlock()
	if r.err != nil {
		s.remove()
	}
	close(r.done)
}

// forget empties the cache after this instance changed the voucher.
func (s *saleState) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cached.Store(nil)
	s.reading = nil
}

// gate answers a request that needs no transaction: before the start, after the end, and when the voucher is sold out.
// If the request was placed before, it returns its order, with replayed. Otherwise, without an error, the request goes on.
func (s *saleState) gate(ctx context.Context, v *cachedVoucher, req PlaceRequest) (order Order, replayed bool, err error) {
	now := v.now()
	if now.Before(v.StartsAt) {
		current := v.Voucher
		current.ServerTime = now // clients count down by it
		return Order{}, false, current.CheckOpen(now)
	}
	if now.Before(v.EndsAt) && !s.soldOut.closed.Load() {
		return Order{}, false, nil
	}
	view, err := s.soldOut.check(ctx)
	if err != nil {
		return Order{}, false, err
	}
	refusal := view.refusal(&v.Voucher)
	if refusal == nil || !view.mayHaveOrdered(req.UserID) {
		return Order{}, false, refusal
	}
	existing, err := s.orders.ExistingOrder(ctx, s.id, req.UserID, req.RequestID, view.terms.UserLimit)
	switch {
	case errors.Is(err, ErrNotFound):
		return Order{}, false, refusal
	case err == nil:
		err = MatchRequest(&existing, req.RequestID, req.VoucherID)
	}
	if err != nil {
		return Order{}, false, err
	}
	return existing, true, nil
}

// MatchRequest returns nil if an existing order was placed by this very request, else the refusal.
func MatchRequest(existing *Order, requestID string, voucherID idgen.ID) error {
	switch {
	case existing.RequestID != requestID:
		return &Error{Code: CodeAlreadyOrdered, Message: "you have ordered as many of this voucher as one user may", Order: existing}
	case existing.VoucherID != voucherID:
		return ErrKeyReused
	}
	return nil
}

// noteResults updates the gate with the results of a batch.
func (s *saleState) noteResults(batch []*Placement) {
	for _, p := range batch {
		switch {
		case p.Err == nil && !p.Replayed:
			s.soldOut.addBuyer(p.Order.UserID)
		case errors.Is(p.Err, ErrSoldOut):
			s.soldOut.closed.Store(true)
		}
	}
}
