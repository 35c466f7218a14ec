package service

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"seckill/service/idgen"
)

// The rest of the model: changes of orders and vouchers.

func (f *fakeStore) Order(_ context.Context, id idgen.ID) (Order, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if o, ok := f.orders[id]; ok {
		return *o, nil
	}
	return Order{}, ErrNotFound
}

func (f *fakeStore) Orders(_ context.Context, user UserID, before idgen.ID, limit int) (page []Order, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range f.orders {
		if o.UserID == user && (before == 0 || o.ID < before) {
			page = append(page, *o)
		}
	}
	slices.SortFunc(page, func(a, b Order) int { return cmp.Compare(b.ID, a.ID) })
	return page[:min(limit, len(page))], nil
}

func (f *fakeStore) Pay(_ context.Context, id idgen.ID, payment Payment, eventID idgen.ID) (Order, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o, ok := f.orders[id]
	if !ok || o.UserID != payment.UserID {
		return Order{}, ErrNotFound
	}
	refund := func() (Order, error) {
		order := *o
		return order, &Error{Code: CodeRefundDue, Order: &order}
	}
	known, paidBefore := f.payments[payment.ID]
	switch {
	case payment.HasMoved() && paidBefore && known.order != id:
		return *o, Invalid("payment_id", "was used for another order")
	case payment.HasMoved() && paidBefore && known.refundDue:
		return refund()
	case payment.HasMoved() && paidBefore:
		return *o, nil
	case o.Status == Pending:
		o.Status, o.PaidAt, o.PayBy = Paid, f.now(), time.Time{}
		o.Version++
		if payment.HasMoved() {
			f.payments[payment.ID] = fakePayment{order: id}
		}
		f.note(eventID, OrderPaid)
		return *o, nil
	case payment.HasMoved():
		o.Version++
		f.payments[payment.ID] = fakePayment{order: id, refundDue: true}
		f.note(eventID, OrderRefundDue)
		return refund()
	case o.Status == Paid:
		return *o, nil
	}
	order := *o
	return order, &Error{Code: CodeOrderClosed, Order: &order}
}

func (f *fakeStore) Cancel(_ context.Context, id idgen.ID, user UserID, eventID idgen.ID) (Order, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	o, ok := f.orders[id]
	if !ok || o.UserID != user {
		return Order{}, ErrNotFound
	}
	order := *o
	switch {
	case o.Status == Paid:
		return order, &Error{Code: CodeOrderPaid, Order: &order}
	case o.CloseReason == Expired:
		return order, &Error{Code: CodeOrderClosed, Order: &order}
	case o.Status == Pending:
		f.close(o, Cancelled, eventID)
	}
	return *o, nil
}

func (f *fakeStore) close(o *Order, reason CloseReason, eventID idgen.ID) {
	o.Status, o.CloseReason, o.ClosedAt, o.PayBy = Closed, reason, f.now(), time.Time{}
	o.Version++
	f.take(f.vouchers[o.VoucherID], -1)
	event := OrderCancelled
	if reason == Expired {
		event = OrderExpired
	}
	f.note(eventID, event)
}

func (f *fakeStore) overdue(o *Order) bool { return o.Status == Pending && !f.now().Before(o.PayBy) }

func (f *fakeStore) Overdue(ctx context.Context, limit int) (ids []idgen.ID, err error) {
	if f.reading != nil {
		if err := f.reading(ctx, "Overdue"); err != nil {
			return nil, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for id, o := range f.orders {
		if f.overdue(o) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids[:min(limit, len(ids))], nil
}

func (f *fakeStore) Expire(ctx context.Context, ids, eventIDs []idgen.ID) (map[idgen.ID]int64, error) {
	if f.reading != nil {
		if err := f.reading(ctx, "Expire"); err != nil {
			return nil, err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	returned := map[idgen.ID]int64{}
	for i, id := range ids {
		if o := f.orders[id]; f.overdue(o) {
			f.close(o, Expired, eventIDs[i])
			returned[o.VoucherID]++
		}
	}
	return returned, nil
}

func (f *fakeStore) Voucher(ctx context.Context, id idgen.ID) (Voucher, error) {
	answer, err := f.read(ctx, "Voucher", &f.voucherReads)
	if err != nil {
		return Voucher{}, err
	}
	defer answer()
	f.mu.Lock()
	defer f.mu.Unlock()
	v, ok := f.vouchers[id]
	if !ok {
		return Voucher{}, ErrNotFound
	}
	found := *v
	found.ServerTime = f.now()
	return found, nil
}

func (f *fakeStore) Vouchers(_ context.Context, before idgen.ID, limit int) (page []Voucher, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, v := range f.vouchers {
		if before == 0 || v.ID < before {
			page = append(page, *v)
		}
	}
	slices.SortFunc(page, func(a, b Voucher) int { return cmp.Compare(b.ID, a.ID) })
	return page[:min(limit, len(page))], nil
}

func (f *fakeStore) Terms(ctx context.Context, id idgen.ID) (Terms, time.Time, error) {
	answer, err := f.read(ctx, "Terms", &f.terms)
	if err != nil {
		return Terms{}, time.Time{}, err
	}
	defer answer()
	f.mu.Lock()
	defer f.mu.Unlock()
	v, ok := f.vouchers[id]
	if !ok {
		return Terms{}, time.Time{}, ErrNotFound
	}
	return v.Terms, f.now(), nil
}

func (f *fakeStore) Create(_ context.Context, id idgen.ID, n NewVoucher) error {
	f.add(Voucher{ID: id, Title: n.Title, PriceCents: n.PriceCents, PayWithin: n.PayWithin, Terms: Terms{
		Total: n.Stock, Stock: n.Stock, UserLimit: n.UserLimit, StartsAt: n.StartsAt, EndsAt: n.EndsAt,
	}})
	return nil
}

func (f *fakeStore) change(id idgen.ID, change func(v *Voucher) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	v, ok := f.vouchers[id]
	if !ok {
		return ErrNotFound
	}
	return change(v)
}

func (f *fakeStore) Change(_ context.Context, id idgen.ID, c VoucherChange) error {
	return f.change(id, func(v *Voucher) error {
		terms, err := c.Apply(v.Terms, f.now())
		if err != nil {
			return err
		}
		v.Terms = terms
		if c.Title != nil {
			v.Title = *c.Title
		}
		if c.PriceCents != nil {
			v.PriceCents = *c.PriceCents
		}
		return nil
	})
}

func (f *fakeStore) AddStock(_ context.Context, id idgen.ID, units int64, requestID string) error {
	return f.change(id, func(v *Voucher) error {
		key := fmt.Sprint(id, requestID)
		if f.restocks[key] {
			return nil
		}
		if v.Total+units > MaxStock {
			return Invalid("units", "too many")
		}
		f.restocks[key] = true
		v.Total += units
		f.take(v, -units)
		return nil
	})
}

func (f *fakeStore) End(_ context.Context, id idgen.ID) error {
	return f.change(id, func(v *Voucher) error {
		if now := f.now(); now.Before(v.EndsAt) {
			v.EndsAt = now
			if v.StartsAt.After(now) {
				v.StartsAt = now
			}
		}
		return nil
	})
}
