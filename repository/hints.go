package repository

import (
	"sync"
	"time"

	"seckill/service"
	"seckill/service/idgen"
)

// reading is a voucher's terms and when they held: at by the database's clock, read by ours, which is monotonic.
type reading struct {
	service.Terms
	at, read time.Time
}

// hints remembers the terms that the last commits have left, so that the next one need not read them first. They are a
// hint: other instances sell too. What it promises is tried, and what it does not is read; nobody is refused by it.
type hints struct {
	mu        sync.Mutex
	byVoucher map[idgen.ID]reading
}

const (
	// hintAge bounds how far the database's clock is carried on by ours.
	hintAge = time.Second
	// mostHints bounds the memory; a shop sells few vouchers at the same time.
	mostHints = 1000
)

func (h *hints) learn(id idgen.ID, last reading) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.byVoucher == nil || len(h.byVoucher) >= mostHints {
		h.byVoucher = map[idgen.ID]reading{}
	}
	h.byVoucher[id] = last
}

func (h *hints) forget(id idgen.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.byVoucher, id)
}

// promises tells whether so many orders of different users can probably be placed, and the database's time. With a limit
// of one, which cannot be lowered, everybody's slot is 0 and the index decides; above that, slots have to be looked up
// first.
func (h *hints) promises(id idgen.ID, orders int) (now time.Time, ok bool) {
	h.mu.Lock()
	last, known := h.byVoucher[id]
	h.mu.Unlock()
	age := time.Since(last.read)
	if !known || age > hintAge || last.UserLimit != 1 || last.Stock < int64(orders) {
		return time.Time{}, false
	}
	now = millis(last.at.Add(age))
	v := service.Voucher{ID: id, Terms: last.Terms}
	return now, v.Open(now) == nil
}
