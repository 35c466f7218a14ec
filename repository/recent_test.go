package repository

import (
	"context"
	"slices"
	"testing"
	"time"

	"seckill/repository/repotest/dbtest"
	"seckill/service"
	"seckill/service/idgen"
)

func TestWhatTheLastTermsPromise(t *testing.T) {
	const id = idgen.ID(7)
	now := time.Now().UTC()
	good := service.Terms{Total: 10, Stock: 5, UserLimit: 1, StartsAt: now.Add(-time.Hour), EndsAt: now.Add(time.Hour)}
	tests := []struct {
		name   string
		change func(*terms)
		orders int
		want   bool
	}{
		{"enough", func(*terms) {}, 5, true},
		{"too few units", func(*terms) {}, 6, false},
		{"too old", func(l *terms) { l.read = l.read.Add(-hintAge - time.Millisecond) }, 1, false},
		{"a limit that may be lowered", func(l *terms) { l.UserLimit = 2 }, 1, false},
		{"not yet open", func(l *terms) { l.StartsAt = now.Add(time.Minute) }, 1, false},
		{"closed since", func(l *terms) { l.EndsAt, l.read = now.Add(10*time.Millisecond), l.read.Add(-20*time.Millisecond) }, 1, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var r recent
			last := terms{Terms: good, now: now, read: time.Now()}
			tt.change(&last)
			r.learn(id, last)
			at, got := r.promises(id, tt.orders)
			if got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
			if got && (at.Before(now.Truncate(time.Millisecond)) || at.After(now.Add(hintAge)) || at.Nanosecond()%1e6 != 0) {
				t.Errorf("it is %s, by terms of %s", at, now)
			}
			r.forget(id)
			if _, still := r.promises(id, 1); still {
				t.Error("it was not forgotten")
			}
		})
	}
	var r recent
	for i := range idgen.ID(3 * mostHints) {
		r.learn(i+1, terms{Terms: good, now: now, read: time.Now()})
	}
	if n := len(r.byVoucher); n > mostHints {
		t.Errorf("%d are remembered", n)
	}
}

// What another instance has done meanwhile decides, not what the last commit has left: nobody is refused by it, and
// nobody is served by it.
func TestAnotherInstanceBetweenTwoBatches(t *testing.T) {
	t.Parallel()
	one := func(verdict string) []string { return []string{verdict} }
	tests := []struct {
		name  string
		stock int64
		other func(t *testing.T, other *Orders, admin *Vouchers, voucher idgen.ID, next service.UserID)
		user  service.UserID // of the next order; the one before was user 1's
		want  string
	}{
		{"nothing", 3, nil, 2, "placed"},
		{"sold the rest", 3, func(_ *testing.T, other *Orders, _ *Vouchers, voucher idgen.ID, _ service.UserID) {
			other.Place(context.Background(), voucher, []*service.Placement{placement(voucher, 91, ""), placement(voucher, 92, "")})
		}, 2, "sold-out"},
		{"sold to the same user", 3, func(_ *testing.T, other *Orders, _ *Vouchers, voucher idgen.ID, next service.UserID) {
			other.Place(context.Background(), voucher, []*service.Placement{placement(voucher, next, "")})
		}, 2, "already-ordered"},
		{"ended the sale", 3, func(t *testing.T, _ *Orders, admin *Vouchers, voucher idgen.ID, _ service.UserID) {
			if err := admin.End(t.Context(), voucher); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Millisecond) // its last millisecond
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
		other := openRaw(t, target, PoolOptions{})
		w := tap(t, db)
		orders := NewOrders(db)
		for i, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				voucher := onSale(t, db, tt.stock, 1)
				first := service.UserID(1000 * (i + 1))
				buy := func(user service.UserID) []string {
					p := placement(voucher, first+user, "")
					orders.Place(t.Context(), voucher, []*service.Placement{p})
					return verdicts([]*service.Placement{p})
				}
				if got := buy(1); !slices.Equal(got, one("placed")) {
					t.Fatal(got)
				}
				const reading = "read_at FROM voucher_stock"
				before := w.count(reading)
				if tt.other != nil {
					tt.other(t, NewOrders(other), NewVouchers(other), voucher, first+tt.user)
				}
				if got := buy(tt.user); !slices.Equal(got, one(tt.want)) {
					t.Errorf("got %v, want %s", got, tt.want)
				}
				if n := w.count(reading) - before; tt.other == nil && n != 0 {
					t.Errorf("the terms were read %d times, although the last commit had left them", n)
				}
			})
		}
	})
}
