package repository

import (
	"fmt"
	"testing"
	"time"

	"seckill/repository/repotest/dbtest"
	"seckill/service"
)

func TestAddStock_OncePerRequest(t *testing.T) {
	t.Parallel()
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db := openDB(t, target)
		voucher := onSale(t, db, 1, 1)
		other := onSale(t, db, 1, 1)
		add := func(units int64, request string) func() {
			return func() {
				if err := NewVouchers(db).AddStock(t.Context(), voucher, units, request); err != nil {
					t.Error(err)
				}
			}
		}
		placed(t, db, voucher, 1)
		atOnce(add(5, "a"), add(5, "a"), add(5, "a"), add(7, "b"), add(7, "b"), func() { place(t, db, placement(voucher, 2, "")) })
		if err := NewVouchers(db).AddStock(t.Context(), other, 2, "a"); err != nil { // a request of another voucher
			t.Error(err)
		}
		terms, _, err := NewVouchers(db).Terms(t.Context(), voucher)
		if err != nil || terms.Total != 13 || terms.Stock != 13-terms.Placed {
			t.Errorf("%+v (%v), want a total of 13", terms, err)
		}
		if left := stockOf(t, db, other); left != 3 {
			t.Errorf("the other voucher has %d, want 3", left)
		}
	})
}

func TestAddStock_Refusals(t *testing.T) {
	t.Parallel()
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db := openDB(t, target)
		vouchers := NewVouchers(db)
		voucher := onSale(t, db, service.MaxStock-10, 1)
		err := vouchers.AddStock(t.Context(), voucher, 11, "a")
		if e, ok := err.(*service.Error); !ok || e.Code != service.CodeInvalid || e.Field != "units" {
			t.Errorf("beyond the maximum: %v", err)
		}
		if err := vouchers.AddStock(t.Context(), voucher, 10, "a"); err != nil { // the refused request left no trace
			t.Error(err)
		}
		err = vouchers.AddStock(t.Context(), voucher, 9, "a") // the same request with another number of units
		if e, ok := err.(*service.Error); !ok || e.Code != service.CodeKeyReused || e.Field != "units" {
			t.Errorf("a key that was used for other units: %v", err)
		}
		if left := stockOf(t, db, voucher); left != service.MaxStock {
			t.Errorf("%d left", left)
		}
		unknown := nextID()
		for name, err := range map[string]error{
			"add":    vouchers.AddStock(t.Context(), unknown, 1, "a"),
			"end":    vouchers.End(t.Context(), unknown),
			"change": vouchers.Change(t.Context(), unknown, service.VoucherChange{UserLimit: new(int)}),
		} {
			if service.CodeOf(err) != service.CodeNotFound {
				t.Errorf("%s of an unknown voucher: %v", name, err)
			}
		}
	})
}

func TestChangeVoucher_Rules(t *testing.T) {
	t.Parallel()
	at := func(d time.Duration) *time.Time { when := time.Now().Add(d); return &when }
	limit := func(n int) *int { return &n }
	title, price := "another title, 中文", int64(5)
	const running, future, over = 0, 2 * time.Hour, -3 * time.Hour // where the window lies, two hours long
	tests := []struct {
		name   string
		window time.Duration
		change service.VoucherChange
		field  string // that is refused
	}{
		{"limit up", running, service.VoucherChange{UserLimit: limit(3)}, ""},
		{"limit as it is", running, service.VoucherChange{UserLimit: limit(2)}, ""},
		{"limit down", running, service.VoucherChange{UserLimit: limit(1)}, "user_limit"},
		{"limit down and a title", running, service.VoucherChange{UserLimit: limit(1), Title: &title}, "user_limit"},
		{"title and price", running, service.VoucherChange{Title: &title, PriceCents: &price}, ""},
		{"later start of a running sale", running, service.VoucherChange{StartsAt: at(-time.Minute)}, "starts_at"},
		{"earlier start of a running sale", running, service.VoucherChange{StartsAt: at(-2 * time.Hour)}, ""},
		{"end in the past", running, service.VoucherChange{EndsAt: at(-time.Minute)}, "ends_at"},
		{"earlier end", running, service.VoucherChange{EndsAt: at(time.Minute)}, ""},
		{"later end", running, service.VoucherChange{EndsAt: at(5 * time.Hour)}, ""},
		{"later start of a sale to come", future, service.VoucherChange{StartsAt: at(2 * time.Hour)}, ""},
		{"start after the end", future, service.VoucherChange{StartsAt: at(10 * time.Hour)}, "ends_at"},
		{"start now", future, service.VoucherChange{StartsAt: at(0)}, ""},
		{"once more", over, service.VoucherChange{EndsAt: at(time.Hour)}, ""},
		{"later start of a sale that is over", over, service.VoucherChange{StartsAt: at(time.Hour), EndsAt: at(2 * time.Hour)}, "starts_at"},
	}
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db := openDB(t, target)
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				now := time.Now()
				voucher := createVoucher(t, db, service.NewVoucher{
					Title: "voucher", PriceCents: 1000, Stock: 5, UserLimit: 2, PayWithin: time.Hour,
					StartsAt: now.Add(tt.window - time.Hour), EndsAt: now.Add(tt.window + time.Hour),
				})
				before, err := NewVouchers(db).Voucher(t.Context(), voucher)
				if err != nil {
					t.Fatal(err)
				}
				err = NewVouchers(db).Change(t.Context(), voucher, tt.change)
				after, readErr := NewVouchers(db).Voucher(t.Context(), voucher)
				if readErr != nil {
					t.Fatal(readErr)
				}
				after.ServerTime = before.ServerTime
				if tt.field != "" {
					e, ok := err.(*service.Error)
					if !ok || e.Code != service.CodeInvalid || e.Field != tt.field {
						t.Errorf("got %v, want %s refused", err, tt.field)
					}
					if after != before {
						t.Errorf("a refused change left %+v of %+v", after, before)
					}
					return
				}
				if want := changed(before, tt.change); err != nil || after != want {
					t.Errorf("%v: got %+v, want %+v", err, after, want)
				}
			})
		}
	})
}

// changed is the voucher with the change made.
func changed(v service.Voucher, c service.VoucherChange) service.Voucher {
	if c.Title != nil {
		v.Title = *c.Title
	}
	if c.PriceCents != nil {
		v.PriceCents = *c.PriceCents
	}
	if c.UserLimit != nil {
		v.UserLimit = *c.UserLimit
	}
	if c.StartsAt != nil {
		v.StartsAt = millis(*c.StartsAt)
	}
	if c.EndsAt != nil {
		v.EndsAt = millis(*c.EndsAt)
	}
	return v
}

func TestEnd(t *testing.T) {
	t.Parallel()
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db := openDB(t, target)
		for name, start := range map[string]time.Duration{"running": -time.Hour, "to come": time.Hour} {
			voucher := createVoucher(t, db, service.NewVoucher{
				Title: name, Stock: 5, UserLimit: 1, PayWithin: time.Second,
				StartsAt: time.Now().Add(start), EndsAt: time.Now().Add(start + 2*time.Hour),
			})
			var first service.Terms
			for again := range 2 {
				if err := NewVouchers(db).End(t.Context(), voucher); err != nil {
					t.Fatal(err)
				}
				terms, now, err := NewVouchers(db).Terms(t.Context(), voucher)
				if err != nil || terms.EndsAt.After(now.Add(2*time.Millisecond)) || terms.StartsAt.After(terms.EndsAt) {
					t.Errorf("%s: %+v at %s (%v)", name, terms, now, err)
				}
				if again == 0 {
					first = terms
				} else if terms != first {
					t.Errorf("%s: ended twice, %+v and %+v", name, first, terms)
				}
			}
		}
	})
}

// freeze stops the database's clock for a DB.
func freeze(t *testing.T, db *DB) time.Time {
	t.Helper()
	now := millis(time.Now())
	literal := fmt.Sprintf("CAST('%s' AS DATETIME(3))", now.Format("2006-01-02 15:04:05.000"))
	if db.Name() == dbtest.SQLite {
		literal = fmt.Sprintf("CAST(%d AS INTEGER)", now.UnixMilli())
	}
	db.dialect.now, db.dialect.nowAtRow = literal, literal
	return now
}

// A sale that ends in the millisecond of an order includes that order and no later one.
func TestEnd_InTheMillisecondOfAnOrder(t *testing.T) {
	t.Parallel()
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db := openDB(t, target)
		frozen := openRaw(t, target, PoolOptions{})
		now := freeze(t, frozen)
		voucher := onSale(t, db, 2, 1)
		if o := placed(t, frozen, voucher, 1); !o.CreatedAt.Equal(now) {
			t.Fatalf("placed at %s, want the frozen %s", o.CreatedAt, now)
		}
		// Less than a column can tell from now is now, and that is what ending is for.
		soon := now.Add(400 * time.Microsecond)
		err := NewVouchers(frozen).Change(t.Context(), voucher, service.VoucherChange{EndsAt: &soon})
		if service.CodeOf(err) != service.CodeInvalid {
			t.Errorf("changed to end now: %v", err)
		}
		if err := NewVouchers(frozen).End(t.Context(), voucher); err != nil {
			t.Fatal(err)
		}
		if got := place(t, db, placement(voucher, 2, ""))[0]; service.CodeOf(got.Err) != service.CodeEnded {
			t.Errorf("ended, then answered %v", got.Err)
		}
	})
}
