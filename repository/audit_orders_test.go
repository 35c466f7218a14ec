package repository

import (
	"errors"
	"testing"

	"seckill/repository/repotest/dbtest"
	"seckill/service"
	"seckill/service/idgen"
)

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
