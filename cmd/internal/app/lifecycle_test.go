package app

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"seckill/handler/token"
	"seckill/repository/repotest/dbtest"
	"seckill/repository/repotest/redistest"
)

// An order's whole life, as openapi.yaml describes it, on every database.
func TestOrder_Lifecycle(t *testing.T) {
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		shop := open(t, optionsFor(t, target, redistest.Addr(t)))
		client := checked(t)
		admin := newBuyer(t, client, shop.URL(), 1, token.Admin)
		user, stranger := newBuyer(t, client, shop.URL(), 2, token.User), newBuyer(t, client, shop.URL(), 3, token.User)
		voucher := admin.createVoucher(sale(3, 2, time.Hour))

		first := user.place(voucher, "one").mustBe(t, "201")
		if again := user.place(voucher, "one").mustBe(t, "200"); again.text("id") != first.text("id") {
			t.Errorf("the same request got order %s, then %s", first.text("id"), again.text("id"))
		}
		second := user.place(voucher).mustBe(t, "201")
		third := user.place(voucher).mustBe(t, "already-ordered")
		if existing, _ := third.body["order"].(map[string]any); existing["id"] != second.text("id") {
			t.Errorf("the existing order is said to be %v", existing)
		}
		path := "/api/v1/orders/" + first.text("id")
		stranger.do(http.MethodGet, path, nil).mustBe(t, "not-found")
		stranger.do(http.MethodPost, path+"/pay", nil).mustBe(t, "not-found")
		stranger.do(http.MethodPost, path+"/cancel", nil).mustBe(t, "not-found")

		user.do(http.MethodPost, path+"/pay", map[string]string{"payment_id": "p1"}).mustBe(t, "200")
		user.do(http.MethodPost, path+"/pay", map[string]string{"payment_id": "p1"}).mustBe(t, "200")
		user.do(http.MethodPost, path+"/pay", map[string]string{"payment_id": "p2"}).mustBe(t, "refund-due")
		user.do(http.MethodPost, path+"/cancel", nil).mustBe(t, "order-paid")

		path = "/api/v1/orders/" + second.text("id")
		user.do(http.MethodPost, path+"/cancel", nil).mustBe(t, "200")
		user.do(http.MethodPost, path+"/cancel", nil).mustBe(t, "200")
		user.do(http.MethodPost, path+"/pay", nil).mustBe(t, "order-closed")
		user.place(voucher, "one").mustBe(t, "200") // the order of a request stays its answer

		mine := user.do(http.MethodGet, "/api/v1/orders", nil).mustBe(t, "200")
		if orders, _ := mine.body["orders"].([]any); len(orders) != 2 {
			t.Errorf("the user's orders: %v", mine.body)
		}
		admin.do(http.MethodPost, "/api/v1/admin/vouchers/"+voucher+"/end", nil).mustBe(t, "200")
		stranger.place(voucher).mustBe(t, "sale-ended")
		user.place(voucher, "one").mustBe(t, "200")
		if totals := mustAudit(t, shop.DB); totals.Paid != 1 || totals.Closed != 1 || totals.Effects != 1 || totals.RefundsDue != 1 {
			t.Errorf("the database says %+v", totals)
		}
		if verdict := admin.do(http.MethodGet, "/api/v1/admin/audit", nil).mustBe(t, "200"); verdict.body["ok"] != true {
			t.Errorf("the audit over HTTP says %v", verdict.body)
		}
	})
}

// Survive 8: pay, cancel and expire at once, each twice: one winner, one unit returned.
func TestOrder_PayCancelExpireAtOnce(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		opts := optionsFor(t, target, "")
		opts.Commit.ExpireEvery = 10 * time.Millisecond
		one, other := open(t, opts), open(t, opts) // both expire
		voucher := newBuyer(t, checked(t), one.URL(), 1, token.Admin).createVoucher(sale(40, 1, time.Second))
		runBuyers(40, 40, func(i int) []answer {
			user := []*buyer{
				newBuyer(t, fast, one.URL(), int64(i+10), token.User),
				newBuyer(t, fast, other.URL(), int64(i+10), token.User),
			}
			placed := user[0].place(voucher).mustBe(t, "201")
			payBy, err := time.Parse(time.RFC3339Nano, placed.text("pay_by"))
			if err != nil {
				t.Error(err)
			}
			time.Sleep(time.Until(payBy) - time.Duration(i%5)*3*time.Millisecond) // some before it is due, some after
			path := "/api/v1/orders/" + placed.text("id")
			answers := atOnce(4, func(k int) answer {
				return user[k%2].do(http.MethodPost, path+[]string{"/pay", "/cancel"}[k/2], nil)
			})
			counts := count(answers)
			paid, cancelled := answers[0].status == 200 || answers[1].status == 200, answers[2].status == 200 || answers[3].status == 200
			if paid && cancelled {
				t.Errorf("paid and cancelled: %v", counts)
			}
			return nil
		})
		totals := mustAudit(t, one.DB)
		t.Logf("%d paid, %d closed", totals.Paid, totals.Closed)
		if totals.Paid+totals.Closed != 40 || totals.Stock != 40-totals.Paid || totals.Effects != totals.Paid {
			t.Errorf("the database says %+v", totals)
		}
	})
}

// SIGTERM under load: requests in progress are answered, nothing is lost, and the process exits with status 0.
func TestInstance_GracefulStop(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		redis := redistest.Start(t)
		survivor := open(t, optionsFor(t, target, redis.Addr))
		voucher := newBuyer(t, checked(t), survivor.URL(), 1, token.Admin).createVoucher(sale(100_000, 1, time.Hour))
		leaving := spawn(t, "SECKILL_MYSQL_DSN="+target.DSN, "SECKILL_REDIS_ADDRS="+redis.Addr)
		stopped := make(chan struct{})
		confirmed := runBuyers(2000, 32, func(i int) []answer {
			if i == 500 {
				go func() {
					defer close(stopped)
					leaving.stop()
				}()
			}
			a := newBuyer(t, fast, leaving.url, int64(i+10), token.User).place(voucher)
			if a.err != nil { // refused, because the instance is gone: another one takes it
				a = newBuyer(t, fast, survivor.URL(), int64(i+10), token.User).place(voucher)
			}
			return []answer{a}
		})
		<-stopped
		if confirmed["201"] != 2000 {
			t.Errorf("got %v", confirmed)
		}
		if totals := mustAudit(t, survivor.DB); totals.Orders != 2000 {
			t.Errorf("%d orders", totals.Orders)
		}
		if keys, err := redis.Client().Keys(context.Background(), "lock:voucher:*").Result(); err != nil || len(keys) > 0 {
			t.Errorf("locks left behind: %v %v", keys, err)
		}
	})
}

// granted reads how many locks had an outcome from the shop's metrics.
func granted(t testing.TB, shop *App, outcome string) int {
	t.Helper()
	response, err := http.Get(shop.URL() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "seckill_commit_batch_orders") {
		t.Fatalf("these are not the shop's metrics: %s", text)
	}
	match := regexp.MustCompile(`seckill_locks_total\{outcome="` + outcome + `"\} (\S+)`).FindSubmatch(text)
	if match == nil {
		return 0
	}
	n, err := strconv.ParseFloat(string(match[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return int(n)
}
