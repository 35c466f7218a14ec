package app

import (
	"strings"
	"testing"
	"time"

	"seckill/handler/token"
	"seckill/repository/repotest/dbtest"
	"seckill/repository/repotest/faultproxy"
	"seckill/repository/repotest/redistest"
)

// Survive 10: an instance is killed between any two steps of placing an order. Nothing half-done is left, and the same
// request again gets its answer from another instance.
func TestOrder_InstanceKilledBetweenSteps(t *testing.T) {
	steps := []struct {
		done   string // the step after which the instance dies, before it can know that the step is done
		server string
		match  string
		placed bool // whether the order stands then
	}{
		{"lock taken", "redis", "evalsha", false},
		{"terms read", "database", "UTC_TIMESTAMP(3) AS read_at FROM voucher_stock s", false},
		{"order and event inserted, unit taken", "database", "UPDATE voucher_stock SET stock", false},
		{"committed", "database", "COMMIT", true},
	}
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		redis := redistest.Start(t)
		survivor := open(t, optionsFor(t, target, redis.Addr))
		admin := newBuyer(t, checked(t), survivor.URL(), 1, token.Admin)
		voucher, warm := admin.createVoucher(sale(100, 1, time.Hour)), admin.createVoucher(sale(100, 1, time.Hour))
		for i, step := range steps {
			t.Run(step.done, func(t *testing.T) {
				database, locks := faultproxy.New(t, target.Addr), faultproxy.New(t, redis.Addr)
				victim := spawn(t,
					"SECKILL_MYSQL_DSN="+strings.Replace(target.DSN, target.Addr, database.Addr(), 1),
					"SECKILL_REDIS_ADDRS="+locks.Addr(), "SECKILL_LOCK_LEASE=1s", "SECKILL_EXPIRE_EVERY=1h", "SECKILL_LOCK_TIMEOUT=10s")
				user := int64(100 + i)
				// What the victim does once before its first order (loading a script, the first connections) is done, on another
				// voucher: it must still have to read the terms of this one.
				newBuyer(t, fast, victim.url, user+1000, token.User).place(warm).mustBe(t, "201")

				waitDelivered(t, survivor.DB) // no other transaction of the victim may be taken for the order's

				proxy := database
				if step.server == "redis" {
					proxy = locks
				}
				fault := proxy.SwallowReply(faultproxy.Contains(step.match))
				lost := make(chan answer, 1)
				go func() { lost <- newBuyer(t, fast, victim.url, user, token.User).place(voucher, "k") }()
				fault.Wait(t)
				victim.kill()
				database.Cut() // the server sees what the kernel of a dead process would have sent
				locks.Cut()
				if a := <-lost; a.err == nil {
					t.Fatalf("the victim answered %s", a.what())
				}

				again := newBuyer(t, checked(t), survivor.URL(), user, token.User)
				var a answer
				for deadline := time.Now().Add(15 * time.Second); ; {
					if a = again.place(voucher, "k"); a.what() != "in-progress" || time.Now().After(deadline) {
						break // in-progress: the lease of the victim's lock has not run out
					}
				}
				want := "201"
				if step.placed {
					want = "200"
				}
				a.mustBe(t, want)
			})
		}
		if totals := mustAudit(t, survivor.DB); totals.Orders != int64(2*len(steps)) {
			t.Errorf("%d orders, want %d", totals.Orders, 2*len(steps))
		}
	})
}
