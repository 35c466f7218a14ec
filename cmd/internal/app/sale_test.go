package app

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/handler/token"
	"seckill/repository/repotest/dbtest"
	"seckill/repository/repotest/redistest"
)

// Survive 1: 64 parallel requests of one user, limit 1: one 201, one row.
func TestSale_OneUserManyTimes(t *testing.T) {
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		shop := open(t, optionsFor(t, target, redistest.Addr(t)))
		voucher := newBuyer(t, checked(t), shop.URL(), 1, token.Admin).createVoucher(sale(1000, 1, time.Hour))
		user := newBuyer(t, checked(t), shop.URL(), 7, token.User)
		counts := count(atOnce(64, func(int) answer { return user.place(voucher) }))
		if counts["201"] != 1 || counts["201"]+counts["in-progress"]+counts["already-ordered"] != 64 {
			t.Errorf("got %v", counts)
		}
		if totals := mustAudit(t, shop.DB); totals.Orders != 1 {
			t.Errorf("%d rows", totals.Orders)
		}
	})
}

// Survive 2: 10,000 buyers for 100 units, every request three times at once, on two instances side by side.
// Survive 3: the same with no lock at all, and with a Redis that forgets all locks again and again.
func TestSale_SoldOut(t *testing.T) {
	buyers := 10_000
	if testing.Short() {
		buyers = 1_000
	}
	for _, variant := range []struct {
		name   string
		locked bool
		forget bool
	}{{"lock", true, false}, {"no lock", false, false}, {"forgetful lock", true, true}} {
		t.Run(variant.name, func(t *testing.T) {
			dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
				addr := ""
				if variant.locked {
					addr = redistest.Start(t).Addr
				}
				if variant.forget {
					forgetLocks(t, addr)
				}
				sellOut(t, target, addr, buyers)
			})
		})
	}
}

func sellOut(t *testing.T, target dbtest.Database, redisAddr string, buyers int) {
	const stock, duplicates = 100, 3
	shops := []*App{open(t, optionsFor(t, target, redisAddr)), open(t, optionsFor(t, target, redisAddr))}
	voucher := newBuyer(t, checked(t), shops[0].URL(), 1, token.Admin).createVoucher(sale(stock, 1, time.Hour))
	counts := runBuyers(buyers, 64, func(i int) []answer {
		return atOnce(duplicates, func(copy int) answer {
			user := newBuyer(t, fast, shops[copy%2].URL(), int64(i+1), token.User)
			if i%2 == 0 {
				return user.place(voucher, userKey(i))
			}
			return user.place(voucher)
		})
	})
	t.Logf("%v", counts)
	if counts["201"] != stock {
		t.Errorf("%d orders were confirmed, want %d", counts["201"], stock)
	}
	for what := range counts {
		switch what {
		case "201", "200", "in-progress", "already-ordered", "sold-out":
		default:
			t.Errorf("unexpected outcome %s", what)
		}
	}
	totals := mustAudit(t, shops[0].DB)
	if totals.Orders != stock || totals.Live != stock || totals.Stock != 0 {
		t.Errorf("the database says %+v", totals)
	}
}

// forgetLocks empties the Redis all the time, until the test ends.
func forgetLocks(t *testing.T, addr string) {
	client := redis.NewClient(&redis.Options{Addr: addr})
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	forgotten := int64(0)
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			n, _ := client.DBSize(ctx).Result()
			forgotten += n
			client.FlushAll(ctx)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		_ = client.Close()
		if forgotten == 0 {
			t.Error("no lock was ever there to be forgotten")
		}
	})
}

// Survive 4: a unit that comes back, whatever way, is sold to the next buyer within two seconds, on every instance.
func TestSale_ReturnedStockIsSold(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		redisAddr := redistest.Addr(t)
		one, other := open(t, optionsFor(t, target, redisAddr)), open(t, optionsFor(t, target, redisAddr))
		admin := newBuyer(t, checked(t), one.URL(), 1, token.Admin)
		next := int64(100)
		newUser := func(shop *App) *buyer {
			next++
			return newBuyer(t, checked(t), shop.URL(), next, token.User)
		}
		ways := map[string]func(t *testing.T, voucher, order string, owner *buyer){
			"cancel": func(t *testing.T, _, order string, owner *buyer) {
				owner.do(http.MethodPost, "/api/v1/orders/"+order+"/cancel", nil).mustBe(t, "200")
			},
			"added stock": func(t *testing.T, voucher, _ string, _ *buyer) {
				admin.do(http.MethodPost, "/api/v1/admin/vouchers/"+voucher+"/stock", map[string]int{"units": 1}).mustBe(t, "200")
			},
			"expiry": func(t *testing.T, _, order string, owner *buyer) {
				deadline := time.Now().Add(10 * time.Second)
				for owner.do(http.MethodGet, "/api/v1/orders/"+order, nil).text("status") != "closed" {
					if time.Now().After(deadline) {
						t.Fatal("the order does not expire")
					}
				}
			},
		}
		for name, giveBack := range ways {
			for _, buyAt := range []*App{one, other} {
				t.Run(name, func(t *testing.T) {
					payWithin := time.Hour
					if name == "expiry" {
						payWithin = time.Second
					}
					voucher := admin.createVoucher(sale(1, 1, payWithin))
					owner := newUser(one)
					order := owner.place(voucher).mustBe(t, "201").text("id")
					for _, shop := range []*App{one, other} { // both know that it is sold out
						newUser(shop).place(voucher).mustBe(t, "sold-out")
					}
					giveBack(t, voucher, order, owner)
					began := time.Now()
					buyer := newUser(buyAt)
					for {
						a := buyer.place(voucher)
						if a.what() == "201" {
							break
						}
						a.mustBe(t, "sold-out")
						if time.Since(began) > 2*time.Second {
							t.Fatal("the unit was not sold within two seconds")
						}
					}
				})
			}
		}
		mustAudit(t, one.DB)
	})
}

// Survive 9: before the start, at the last millisecond, after the end; two instances, one of which was told by its DSN
// that it lives in another time zone.
func TestSale_Window(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		far := target
		far.DSN += "?loc=Asia%2FShanghai&parseTime=false&clientFoundRows=true&time_zone=%27%2B08%3A00%27"
		shops := []*App{open(t, optionsFor(t, target, "")), open(t, optionsFor(t, far, ""))}
		admin := newBuyer(t, checked(t), shops[0].URL(), 1, token.Admin)
		v := sale(1000, 1, time.Hour)
		start := time.Now().Add(1500 * time.Millisecond).Truncate(time.Millisecond)
		end := start.Add(700 * time.Millisecond)
		v["starts_at"], v["ends_at"] = start.UTC(), end.UTC()
		voucher := admin.createVoucher(v)

		type moment struct {
			at   time.Time // when the request was sent
			done time.Time
			what string
		}
		var moments []moment
		for user := int64(1000); time.Now().Before(end.Add(300 * time.Millisecond)); user++ {
			b := newBuyer(t, fast, shops[user%2].URL(), user, token.User)
			at := time.Now()
			a := b.place(voucher)
			moments = append(moments, moment{at, time.Now(), a.what()})
		}
		seen := map[string]int{}
		for _, m := range moments {
			seen[m.what]++
			switch {
			case m.done.Before(start) && m.what != "sale-not-started",
				m.at.After(start.Add(50*time.Millisecond)) && m.done.Before(end.Add(-50*time.Millisecond)) && m.what != "201",
				m.at.After(end) && m.what != "sale-ended":
				t.Errorf("%s at %s of a sale from 0 to %s", m.what, m.at.Sub(start), end.Sub(start))
			}
		}
		if seen["sale-not-started"] == 0 || seen["201"] == 0 || seen["sale-ended"] == 0 || len(seen) != 3 {
			t.Errorf("saw %v", seen)
		}
		if totals := mustAudit(t, shops[0].DB); totals.Orders != int64(seen["201"]) {
			t.Errorf("%d confirmed, %d in the database", seen["201"], totals.Orders)
		}
	})
}
