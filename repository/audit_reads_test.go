package repository

import (
	"errors"
	"testing"
	"time"

	"seckill/repository/repotest/dbtest"
	"seckill/service"
	"seckill/service/idgen"
)

// The balance holds, and after a manipulation it says by how much it is off.
func TestStockBalance(t *testing.T) {
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db := openDB(t, target)
		first := onSale(t, db, 3, 1)
		onSale(t, db, 5, 1)
		place(t, db, placement(first, 1, ""), placement(first, 2, ""))
		createVoucher(t, db, service.NewVoucher{
			Title: "long ago", PriceCents: 1, Stock: 7, UserLimit: 1, PayWithin: time.Hour,
			StartsAt: time.Now().Add(-2 * time.Hour), EndsAt: time.Now().Add(-time.Hour),
		})
		check := func(recent time.Duration, want service.StockBalance) {
			t.Helper()
			if got, err := db.StockBalance(t.Context(), recent); err != nil || got != want {
				t.Errorf("%+v %v, want %+v", got, err, want)
			}
		}
		check(time.Minute, service.StockBalance{Vouchers: 2, Total: 8, Stock: 6, Live: 2})
		check(2*time.Hour, service.StockBalance{Vouchers: 3, Total: 15, Stock: 13, Live: 2})

		manipulate := func(total, stock int64) {
			t.Helper()
			if err := db.gorm.Exec("UPDATE voucher_stock SET total = ?, stock = ? WHERE voucher_id = ?", total, stock, first).Error; err != nil {
				t.Fatal(err)
			}
		}
		manipulate(3, 2) // a unit too many: it is sold again
		check(time.Minute, service.StockBalance{Vouchers: 2, Total: 8, Stock: 7, Live: 2, Unaccounted: 1})
		manipulate(1, 0) // two orders for one unit
		check(time.Minute, service.StockBalance{Vouchers: 2, Total: 6, Stock: 5, Live: 2, Oversold: 1, Unaccounted: 1})
		manipulate(3, 1) // as it was, for the audit
	})
}

func TestEachOrder_AllOrdersOfTheVouchers(t *testing.T) {
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db := openDB(t, target)
		mine, other := onSale(t, db, 10, 1), onSale(t, db, 10, 1)
		want := map[idgen.ID]service.Order{}
		for user := service.UserID(1); user <= 5; user++ {
			p := placed(t, db, mine, user)
			want[p.ID] = p
			placed(t, db, other, user)
		}
		got := map[idgen.ID]service.Order{}
		err := db.EachOrder(t.Context(), []idgen.ID{mine}, func(o service.Order) error { got[o.ID] = o; return nil })
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) {
			t.Errorf("%d orders, want %d", len(got), len(want))
		}
		for id, o := range want {
			if o.Status != service.Pending || got[id] != o {
				t.Errorf("order %+v came out as %+v", o, got[id])
			}
		}
		stop, n := errors.New("enough"), 0
		err = db.EachOrder(t.Context(), []idgen.ID{mine, other}, func(service.Order) error { n++; return stop })
		if !errors.Is(err, stop) || n != 1 {
			t.Errorf("after %d orders: %v", n, err)
		}
		if err := db.EachOrder(t.Context(), nil, func(service.Order) error { return stop }); err != nil {
			t.Errorf("no vouchers: %v", err)
		}
		unsent, err := db.Unsent(t.Context())
		if err != nil || unsent != 10 {
			t.Errorf("%d events unsent, %v; want one for each of 10 orders", unsent, err)
		}
	})
}
