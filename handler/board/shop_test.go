package board

import (
	"encoding/json"
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"seckill/service"
	"seckill/service/idgen"
)

// eventsOf lists the events of some kinds, as "kind what".
func eventsOf(b *Board, kinds ...Kind) (list []string) {
	events := b.events.between(0, math.MaxInt64)
	for _, e := range events {
		if slices.Contains(kinds, e.Kind) {
			list = append(list, string(e.Kind)+" "+e.What)
		}
	}
	return list
}

func mustTell(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("the line says %q, want %q", got, want)
	}
}

func TestTimeline_Sale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shop := &fakeShop{}
		shop.put(voucher(1, 0, 10, time.Now().Add(-time.Minute))) // is sold out from the beginning: no news
		b := newBoard(shop, nil)
		run(t, b)
		time.Sleep(time.Second)
		opens := time.Now().Add(time.Minute)
		shop.put(voucher(2, 100, 100, opens))
		time.Sleep(30 * time.Second)
		sale := []Kind{SaleOpened, SoldOut, OnSaleAgain, SaleEnded}
		mustTell(t, eventsOf(b, sale...))
		time.Sleep(time.Minute)
		mustTell(t, eventsOf(b, sale...), "sale-opened voucher 2")
		events := b.events.between(0, math.MaxInt64)
		if i := slices.IndexFunc(events, func(e Event) bool { return e.Kind == SaleOpened }); events[i].At != b.events.since(opens) {
			t.Errorf("opened at %d, the line says %d", b.events.since(opens), events[i].At)
		}

		shop.put(voucher(2, 0, 100, opens))
		time.Sleep(10 * time.Second)
		shop.put(voucher(2, 3, 100, opens))
		time.Sleep(10 * time.Second)
		for range 20 { // single units that come and go
			shop.put(voucher(2, 0, 100, opens))
			time.Sleep(300 * time.Millisecond)
			shop.put(voucher(2, 1, 100, opens))
			time.Sleep(300 * time.Millisecond)
		}
		got := eventsOf(b, sale...)
		mustTell(t, got[:3], "sale-opened voucher 2", "sold-out voucher 2", "on-sale-again voucher 2")
		if len(got) > 9 {
			t.Errorf("the line is full of %q", got)
		}
		time.Sleep(2 * time.Hour)
		got = eventsOf(b, sale...)
		if got[len(got)-1] != "sale-ended voucher 2" {
			t.Errorf("the line ends with %q", got)
		}
	})
}

// The board is about what is being bought, also if that is an old voucher, and does not waver between two.
func TestVouchers_Focus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shop := &fakeShop{}
		for id := range idgen.ID(20) {
			shop.put(voucher(id+1, 50, 100, time.Now().Add(-time.Minute)))
		}
		b := newBoard(shop, nil)
		run(t, b)
		time.Sleep(time.Second)
		buy := func(id idgen.ID, n int64) {
			shop.change(func() {
				v := shop.vouchers[id]
				v.Placed += n
				shop.vouchers[id] = v
			})
		}
		focus := func() idgen.ID {
			time.Sleep(6 * time.Second)
			return viewOf(b).vouchers[0].ID
		}
		if got := focus(); got != 20 {
			t.Errorf("without orders it is about %s", got)
		}
		buy(3, 1)
		if got := focus(); got != 3 {
			t.Errorf("only 3 was bought, it is about %s", got)
		}
		buy(3, 100)
		focus()
		for range 10 {
			buy(3, 90)
			buy(5, 110)
			if got := focus(); got != 3 {
				t.Fatalf("two that sell as well: it went over to %s", got)
			}
		}
		buy(5, 1000)
		if got := focus(); got != 5 {
			t.Errorf("5 sells far better, it is about %s", got)
		}
		if n := len(viewOf(b).vouchers); n != shownVouchers {
			t.Errorf("%d vouchers are shown", n)
		}
	})
}

func viewOf(b *Board) shopView {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.view
}

func TestInstances_Events(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shop := &fakeShop{}
		text := func(r report) []byte {
			text, err := json.Marshal(r)
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		shop.others = []service.Instance{{Name: "was here", Report: text(report{Began: 1})}}
		b := newBoard(shop, nil)
		stop := run(t, b)
		others := func(list ...service.Instance) {
			shop.change(func() { shop.others = list })
			time.Sleep(5 * time.Second)
		}
		others(shop.others...)
		kinds := []Kind{InstanceCame, InstanceLost, InstanceWent}
		mustTell(t, eventsOf(b, kinds...))
		one := service.Instance{Name: "one", Report: text(report{Began: 5, OrderRate: 7})}
		others(one, service.Instance{Name: "odd", Report: []byte("not what we know")})
		mustTell(t, eventsOf(b, kinds...), "instance-came one", "instance-came odd", "instance-went was here")
		if got := viewOf(b).instances; len(got) != 3 || !got[0].Self || got[1].OrderRate != 7 || got[2].Name != "odd" {
			t.Errorf("instances %+v", got)
		}
		silent := one
		silent.Age = time.Minute
		others(silent)
		others(one)
		again := one
		again.Report = text(report{Began: 6})
		others(again)
		others()
		mustTell(t, eventsOf(b, kinds...)[3:], "instance-lost one", "instance-went odd", "instance-came one", "instance-came one", "instance-went one")
		stop()
		if !slices.Equal(shop.left, []string{"me:1"}) {
			t.Errorf("left: %q", shop.left)
		}
	})
}

// A database that is away, or hangs, is an event, and the board goes on with everything else.
func TestPoller_DatabaseUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shop := &fakeShop{}
		shop.put(voucher(1, 5, 10, time.Now()))
		b := newBoard(shop, nil)
		run(t, b)
		w := watch(t, b, 0, "")
		time.Sleep(2 * time.Second)
		shop.change(func() { shop.broken = errors.New("gone") })
		busyShop(b, 5*time.Second)
		shop.change(func() { shop.broken = nil })
		time.Sleep(5 * time.Second)
		shop.change(func() { shop.hangs = true })
		busyShop(b, pollTimeout+2*time.Second)
		synctest.Wait()
		got := w.read(t, seen{})
		if mustKnow(t, b, got); got.Figures["database_away"] != 1 || got.Figures["stock"] != 5 {
			t.Errorf("away %d, stock %d", got.Figures["database_away"], got.Figures["stock"])
		}
		if got.Changes < 50 {
			t.Errorf("only %d changes came", got.Changes)
		}
		mustTell(t, eventsOf(b, DatabaseAway, DatabaseBack), "database-away ", "database-back ", "database-away ")
	})
}
