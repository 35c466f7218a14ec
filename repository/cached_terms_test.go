package repository

import (
	"context"
	"testing"
	"time"

	"seckill/repository/repotest/dbtest"
	"seckill/service"
	"seckill/service/idgen"
)

func TestTermsCache_Take(t *testing.T) {
	const id = idgen.ID(7)
	now := time.Now().UTC()
	good := service.Terms{Total: 10, Stock: 5, UserLimit: 1, StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour)}
	tests := []struct {
		name   string
		change func(*cachedTerms)
		orders int
		want   bool
	}{
		{"enough", func(*cachedTerms) {}, 5, true},
		{"too few units", func(*cachedTerms) {}, 6, false},
		{"too old", func(c *cachedTerms) { c.read = c.read.Add(-maxTermsAge - time.Millisecond) }, 1, false},
		{"a limit above one", func(c *cachedTerms) { c.UserLimit = 2 }, 1, false},
		{"not yet open", func(c *cachedTerms) { c.StartsAt = now.Add(time.Minute) }, 1, false},
		{"closed since", func(c *cachedTerms) {
			c.EndsAt, c.read = now.Add(10*time.Millisecond), c.read.Add(-20*time.Millisecond)
		}, 1, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var cache termsCache
			last := cachedTerms{Terms: good, at: now, read: time.Now()}
			tt.change(&last)
			cache.put(id, last)
			at, got := cache.take(id, tt.orders)
			if got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			if got && (at.Before(now.Truncate(time.Millisecond)) || at.After(now.Add(maxTermsAge)) || at.Nanosecond()%1e6 != 0) {
				t.Errorf("it is %s, by terms of %s", at, now)
			}
			if _, still := cache.take(id, 1); still {
				t.Error("the terms can be taken twice")
			}
		})
	}
}

func TestTermsCache_Bounded(t *testing.T) {
	var cache termsCache
	for i := range idgen.ID(3 * maxCachedTerms) {
		cache.put(i+1, cachedTerms{})
	}
	if n := len(cache.byVoucher); n > maxCachedTerms {
		t.Errorf("%d are cached", n)
	}
}

// Cached terms are hints. Whatever another instance did since, the next order gets the database's verdict.
func TestPlace_AnotherInstanceBetweenTwoBatches(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		stock     int64
		meanwhile func(t *testing.T, rival *Orders, admin *Vouchers, voucher idgen.ID, next service.UserID)
		user      service.UserID // of the next order; user 1 placed the first
		want      string
	}{
		{"nothing", 3, nil, 2, "placed"},
		{"sold the rest", 3, func(_ *testing.T, rival *Orders, _ *Vouchers, voucher idgen.ID, _ service.UserID) {
			rival.Place(context.Background(), voucher, []*service.Placement{placement(voucher, 91, ""), placement(voucher, 92, "")})
		}, 2, "sold-out"},
		{"sold to the same user", 3, func(_ *testing.T, rival *Orders, _ *Vouchers, voucher idgen.ID, next service.UserID) {
			rival.Place(context.Background(), voucher, []*service.Placement{placement(voucher, next, "")})
		}, 2, "already-ordered"},
		{"ended the sale", 3, func(t *testing.T, _ *Orders, admin *Vouchers, voucher idgen.ID, _ service.UserID) {
			if err := admin.End(t.Context(), voucher); err != nil {
				t.Fatal(err)
			}
			waitForEnd(admin.db, voucher)
		}, 2, "sale-ended"},
		{"added units", 1, func(t *testing.T, _ *Orders, admin *Vouchers, voucher idgen.ID, _ service.UserID) {
			if err := admin.AddStock(t.Context(), voucher, 1, "more"); err != nil {
				t.Fatal(err)
			}
		}, 2, "placed"},
		{"raised the limit", 3, func(t *testing.T, _ *Orders, admin *Vouchers, voucher idgen.ID, _ service.UserID) {
			limit := 2
			if err := admin.Change(t.Context(), voucher, service.VoucherChange{UserLimit: &limit}); err != nil {
				t.Fatal(err)
			}
		}, 1, "placed"},
	}
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		db := openDB(t, target)
		otherDB := openRaw(t, target, PoolOptions{})
		w := tap(t, db)
		orders := NewOrders(db)
		for i, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				voucher := onSale(t, db, tt.stock, 1)
				first := service.UserID(1000 * (i + 1))
				buy := func(user service.UserID) string {
					p := placement(voucher, first+user, "")
					orders.Place(t.Context(), voucher, []*service.Placement{p})
					return verdicts([]*service.Placement{p})[0]
				}
				if got := buy(1); got != "placed" {
					t.Fatal(got)
				}
				const reading = "read_at FROM voucher_stock"
				before := w.count(reading)
				if tt.meanwhile != nil {
					tt.meanwhile(t, NewOrders(otherDB), NewVouchers(otherDB), voucher, first+tt.user)
				}
				if got := buy(tt.user); got != tt.want {
					t.Errorf("got %s, want %s", got, tt.want)
				}
				if n := w.count(reading) - before; tt.meanwhile == nil && n != 0 {
					t.Errorf("the terms were read %d times, although the last commit had left them", n)
				}
			})
		}
	})
}

// The machine slept, or a clock was set: orders get the database's time all the same.
func TestPlace_CachedTermsOfAnotherTime(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		db := openDB(t, target)
		for name, off := range map[string]time.Duration{"behind": -30 * time.Minute, "ahead": 30 * time.Minute} {
			t.Run(name, func(t *testing.T) {
				voucher := onSale(t, db, 3, 1)
				terms, now, err := NewVouchers(db).Terms(t.Context(), voucher)
				if err != nil {
					t.Fatal(err)
				}
				orders := NewOrders(db)
				orders.cached.put(voucher, cachedTerms{Terms: terms, at: now.Add(off), read: time.Now()})
				p := placement(voucher, 1, "")
				orders.Place(t.Context(), voucher, []*service.Placement{p})
				if p.Err != nil || p.Order.CreatedAt.Sub(now).Abs() > time.Minute {
					t.Errorf("%v, placed at %s by a clock that says %s", p.Err, p.Order.CreatedAt, now)
				}
			})
		}
	})
}
