package app

import (
	"log/slog"
	"net/http"
	"testing"
	"time"

	"seckill/handler/token"
	"seckill/repository/repotest/dbtest"
	"seckill/repository/repotest/redistest"
)

// Two instances sell side by side with every kind of id. The audit finds no duplicate id.
func TestIDs_EveryKind(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		redis := redistest.Start(t)
		for _, kind := range []string{"snowflake", "leaf", "redis-segment"} {
			t.Run(kind, func(t *testing.T) {
				opts := optionsFor(t, target, redis.Addr)
				opts.IDs.IDs = kind
				if kind == "redis-segment" { // must be restored above the ids of leaf first
					if _, err := RestoreIDs(t.Context(), opts.Servers, slog.New(slog.DiscardHandler)); err != nil {
						t.Fatal(err)
					}
				}
				shops := []*App{open(t, opts), open(t, opts)}
				voucher := newBuyer(t, checked(t), shops[0].URL(), 1, token.Admin).createVoucher(sale(1000, 1, time.Hour))
				counts := runBuyers(1000, 32, func(i int) []answer {
					return []answer{newBuyer(t, fast, shops[i%2].URL(), int64(i+10), token.User).place(voucher)}
				})
				if counts["201"] != 1000 {
					t.Errorf("got %v", counts)
				}
				mustAudit(t, shops[0].DB)

				admin := newBuyer(t, checked(t), shops[0].URL(), 1, token.Admin)
				made := admin.do(http.MethodPost, "/api/v1/admin/ids?n=3", nil).mustBe(t, "200")
				ids, _ := made.body["ids"].([]any)
				if len(ids) != 3 {
					t.Fatalf("asked for three ids, got %v", made.body)
				}
				decoded := admin.do(http.MethodGet, "/api/v1/admin/ids/"+ids[2].(string), nil).mustBe(t, "200")
				at, err := time.Parse(time.RFC3339Nano, decoded.text("time"))
				if snowflake := kind == "snowflake"; snowflake != (decoded.text("kind") == "snowflake") ||
					snowflake && (err != nil || time.Since(at).Abs() > time.Minute) {
					t.Errorf("an id of %s is said to be %v", kind, decoded.body)
				}
				admin.do(http.MethodPost, "/api/v1/admin/ids?n=0", nil).mustBe(t, "invalid")
			})
		}
	})
}

// A Redis that lost its counter is refused until an operator restores the counter.
func TestIDs_LostCounterIsRefused(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		redis := redistest.Start(t)
		opts := optionsFor(t, target, redis.Addr)
		opts.IDs.IDs = "redis-segment"
		shop := open(t, opts)
		newBuyer(t, checked(t), shop.URL(), 1, token.Admin).createVoucher(sale(10, 1, time.Hour))
		redis.Kill()
		redis.Restart() // empty

		log := slog.New(slog.DiscardHandler)
		if second, err := Start(t.Context(), opts, log); err == nil {
			_ = second.Close(t.Context())
			t.Fatal("a shop believed a Redis that had forgotten how many ids were given away")
		}
		if _, err := RestoreIDs(t.Context(), opts.Servers, log); err != nil {
			t.Fatal(err)
		}
		second := open(t, opts)
		newBuyer(t, checked(t), second.URL(), 1, token.Admin).createVoucher(sale(10, 1, time.Hour))
		mustAudit(t, second.DB)
	})
}
