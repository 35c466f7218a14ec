package repository

import (
	"sync"
	"time"

	"seckill/service"
	"seckill/service/idgen"
)

// cachedTerms are a voucher's terms as a commit left them: at by the database's clock, read by this machine's monotonic
// clock.
type cachedTerms struct {
	service.Terms
	at, read time.Time
}

// termsCache keeps the terms that the last commits left, so that the next ones need not read them first. They are hints:
// other instances sell too. No order is refused because of them.
type termsCache struct {
	mu        sync.Mutex
	byVoucher map[idgen.ID]cachedTerms
}

const (
	// maxTermsAge bounds how far this machine's clock stands in for the database's.
	maxTermsAge = time.Second
	// maxCachedTerms bounds the memory; a shop sells few vouchers at the same time.
	maxCachedTerms = 1000
)

func (c *termsCache) put(id idgen.ID, t cachedTerms) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byVoucher == nil || len(c.byVoucher) >= maxCachedTerms {
		c.byVoucher = map[idgen.ID]cachedTerms{}
	}
	c.byVoucher[id] = t
}

// take removes the voucher's terms and returns the database's time, with ok if the terms promise units for so many
// orders of different users. With a limit of one, which cannot be lowered, every user's slot is 0 and the index decides;
// above that, slots have to be looked up.
func (c *termsCache) take(id idgen.ID, orders int) (now time.Time, ok bool) {
	c.mu.Lock()
	t, known := c.byVoucher[id]
	delete(c.byVoucher, id)
	c.mu.Unlock()
	age := time.Since(t.read)
	if !known || age > maxTermsAge || t.UserLimit != 1 || t.Stock < int64(orders) {
		return time.Time{}, false
	}
	now = millis(t.at.Add(age))
	v := service.Voucher{ID: id, Terms: t.Terms}
	return now, v.Open(now) == nil
}
