package app

import (
	"net/http"
	"testing"
	"time"

	"seckill/handler/token"
	"seckill/repository/repotest/dbtest"
	"seckill/repository/repotest/redistest"
	"seckill/repository/repotest/wait"
)

// Survive 11: Redis is unavailable at the start, comes back, and hangs. The shop goes on with the database alone.
func TestRedis_Outages(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		redis := redistest.Start(t)
		redis.Kill()
		shop := open(t, optionsFor(t, target, redis.Addr))
		voucher := newBuyer(t, checked(t), shop.URL(), 1, token.Admin).createVoucher(sale(100_000, 1, time.Hour))
		user := int64(100)
		sell := func(n int) {
			t.Helper()
			first := user
			user += int64(n)
			counts := runBuyers(n, 16, func(i int) []answer {
				b := newBuyer(t, fast, shop.URL(), first+int64(i), token.User)
				return atOnce(2, func(int) answer { return b.place(voucher) })
			})
			if counts["201"] != n || counts["201"]+counts["in-progress"]+counts["already-ordered"] != 2*n {
				t.Errorf("%d buyers: %v", n, counts)
			}
		}
		sell(200)
		if granted(t, shop, "granted") != 0 || granted(t, shop, "bypassed") == 0 {
			t.Error("without a Redis, locks are bypassed")
		}
		redis.Restart()
		wait.Within(t, 20*time.Second, "locks after Redis came", func() bool { sell(5); return granted(t, shop, "granted") > 0 })
		sell(200)
		redis.Pause() // hangs, which is worse than being down
		before := granted(t, shop, "bypassed")
		sell(200)
		if granted(t, shop, "bypassed") == before {
			t.Error("with a hung Redis, locks are bypassed")
		}
		redis.Resume()
		before = granted(t, shop, "granted")
		wait.Within(t, 20*time.Second, "locks after Redis came back", func() bool { sell(5); return granted(t, shop, "granted") > before })
		mustAudit(t, shop.DB)
	})
}

// With --lock-required nothing is sold without a lock.
func TestLock_Required(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		redis := redistest.Start(t)
		opts := optionsFor(t, target, redis.Addr)
		opts.Lock.LockRequired = true
		shop := open(t, opts)
		voucher := newBuyer(t, checked(t), shop.URL(), 1, token.Admin).createVoucher(sale(10, 1, time.Hour))
		user := newBuyer(t, checked(t), shop.URL(), 2, token.User)
		redis.Kill()
		user.place(voucher).mustBe(t, "unavailable")
		redis.Restart()
		wait.Within(t, 20*time.Second, "an order after Redis came back", func() bool { return user.place(voucher).what() == "201" })
		if totals := mustAudit(t, shop.DB); totals.Orders != 1 {
			t.Errorf("%d orders", totals.Orders)
		}
	})
}

// Survive 6, over HTTP: the database is killed under load and started again. Every 201 is there, every unknown outcome
// is resolved by repeating the request.
func TestDatabase_KilledUnderLoad(t *testing.T) {
	dbtest.EachServer(t, func(t *testing.T, server *dbtest.Server) {
		target := server.Create()
		opts := optionsFor(t, target, "")
		opts.Commit.CommitTimeout = time.Second // shorter than the outage, so that some orders fail
		shop := open(t, opts)
		voucher := newBuyer(t, checked(t), shop.URL(), 1, token.Admin).createVoucher(sale(100_000, 1, time.Hour))
		const buyers = 3000
		answers := make([]answer, buyers)
		served := make(chan string, buyers)
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			for range buyers / 4 {
				<-served
			}
			server.Kill()
			for what := range served {
				if what != "201" { // somebody noticed
					break
				}
			}
			server.Restart()
		}()
		place := func(i int) answer {
			return newBuyer(t, fast, shop.URL(), int64(i+10), token.User).place(voucher, userKey(i))
		}
		runBuyers(buyers, 64, func(i int) []answer {
			answers[i] = place(i)
			served <- answers[i].what()
			return nil
		})
		close(served)
		<-killed
		t.Logf("%v", count(answers))

		confirmed := map[string]bool{}
		unsettled := 0
		for i, a := range answers {
			if a.what() != "201" {
				unsettled++
				a = place(i)
				if what := a.what(); what != "201" && what != "200" {
					t.Fatalf("buyer %d was answered %s, and then %s (%v)", i, answers[i].what(), what, a.body)
				}
			}
			confirmed[a.text("id")] = true
		}
		if unsettled == 0 {
			t.Error("no buyer noticed that the database was killed")
		}
		if totals := mustAudit(t, shop.DB); totals.Orders != buyers || len(confirmed) != buyers {
			t.Errorf("%d buyers, %d confirmed orders, %d in the database", buyers, len(confirmed), totals.Orders)
		}
	})
}

// While the database hangs, the answer is "unknown" or "unavailable", in time. Afterwards the same request gets its outcome.
func TestDatabase_Hangs(t *testing.T) {
	dbtest.EachServer(t, func(t *testing.T, server *dbtest.Server) {
		target := server.Create()
		opts := optionsFor(t, target, "")
		opts.Commit.CommitTimeout = 2 * time.Second
		shop := open(t, opts)
		voucher := newBuyer(t, checked(t), shop.URL(), 1, token.Admin).createVoucher(sale(10, 1, time.Hour))
		user := newBuyer(t, checked(t), shop.URL(), 2, token.User)
		newBuyer(t, checked(t), shop.URL(), 3, token.User).place(voucher).mustBe(t, "201")
		server.Pause()
		began := time.Now()
		a := user.place(voucher, "k")
		if what := a.what(); what != "outcome-unknown" && what != "unavailable" {
			t.Errorf("a hung database is answered with %s", what)
		}
		if took := time.Since(began); took > 8*time.Second {
			t.Errorf("the answer took %s", took)
		}
		if a := user.do(http.MethodGet, "/healthz", nil); a.status != http.StatusOK {
			t.Errorf("the process is alive, /healthz says %d", a.status)
		}
		if a := user.do(http.MethodGet, "/readyz", nil); a.status != http.StatusServiceUnavailable {
			t.Errorf("the database is away, /readyz says %d", a.status)
		}
		server.Resume()
		wait.Within(t, 20*time.Second, "an answer after the database came back", func() bool {
			what := user.place(voucher, "k").what()
			return what == "201" || what == "200"
		})
		if totals := mustAudit(t, shop.DB); totals.Orders != 2 {
			t.Errorf("%d orders", totals.Orders)
		}
	})
}
