package repository

import (
	"sync"
	"time"

	"seckill/service"
	"seckill/service/idgen"
)

// terms are the terms of a voucher at a time of the database's clock, which was read at a time of ours.
type terms struct {
	service.Terms
	now  time.Time
	read time.Time // monotonic
}

// recent remembers the terms that the last commits have left, so that the next one need not read them first. They are a
// hint: other instances sell too. What it promises is tried, and what it does not is read; nobody is refused by it.
type recent struct {
	mu        sync.Mutex
	byVoucher map[idgen.ID]terms
}

const (
	// hintAge bounds how far the database's clock is carried on by ours.
	hintAge = time.Second
	// mostHints bounds the memory; a shop sells few vouchers at the same time.
	mostHints = 1000
)

func (r *recent) learn(id idgen.ID, t terms) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byVoucher == nil || len(r.byVoucher) >= mostHints {
		r.byVoucher = map[idgen.ID]terms{}
	}
	r.byVoucher[id] = t
}

func (r *recent) forget(id idgen.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byVoucher, id)
}

// promises tells whether so many orders of different users can probably be placed, and the database's time. A limit of
// one is never lowered, so that it needs no reading; others do.
func (r *recent) promises(id idgen.ID, orders int) (now time.Time, ok bool) {
	r.mu.Lock()
	t, known := r.byVoucher[id]
	r.mu.Unlock()
	age := time.Since(t.read)
	if !known || age > hintAge || t.UserLimit != 1 || t.Stock < int64(orders) {
		return time.Time{}, false
	}
	now = millis(t.now.Add(age))
	v := service.Voucher{ID: id, Terms: t.Terms}
	return now, v.Open(now) == nil
}
