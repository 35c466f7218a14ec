package repository

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seckill/repository/repotest/dbtest"
	"seckill/repository/repotest/faultproxy"
	"seckill/service"
	"seckill/service/idgen"
)

// throughProxy opens a second way to a database, over a proxy that can break it.
func throughProxy(t *testing.T, target dbtest.Database) (*DB, *faultproxy.Proxy) {
	t.Helper()
	proxy := faultproxy.New(t, target.Addr)
	cfg, err := mysql.ParseDSN(target.DSN)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Addr = proxy.Addr()
	return openRaw(t, dbtest.Database{Engine: target.Engine, DSN: cfg.FormatDSN()}, PoolOptions{}), proxy
}

// aBatch asks for one unit for each of n users, with keys as long as they may be.
func aBatch(voucher idgen.ID, n int) []*service.Placement {
	batch := make([]*service.Placement, n)
	for i := range batch {
		key := fmt.Sprintf("%d-%d-", voucher, i)
		batch[i] = placement(voucher, service.UserID(i+1), key+strings.Repeat("k", service.MaxRequestID-len(key)))
	}
	return batch
}

// A connection breaks at any step of placing: the orders get the same verdicts as without it.
func TestPlace_BrokenConnectionChangesNoVerdict(t *testing.T) {
	t.Parallel()
	has := faultproxy.Contains
	const orders, events, stock = "INSERT INTO voucher_order", "INSERT INTO outbox_event", "UPDATE voucher_stock"
	inTheMiddle := func(request []byte) bool { // the proxy forwards at most 64 KiB at once: a part is on its way already
		return bytes.Contains(request, []byte(orders)) && len(request) > 64<<10
	}
	cut, lose := (*faultproxy.Proxy).CutOnRequest, (*faultproxy.Proxy).DropReply
	tests := []struct {
		name  string
		size  int
		twice bool // the first user comes again: the first transaction is rolled back
		steps bool // every statement is a separate message
		how   func(*faultproxy.Proxy, func([]byte) bool) *faultproxy.Fault
		at    func([]byte) bool
	}{
		{"cut before the transaction", 9, false, false, cut, has("START TRANSACTION")},
		{"cut before the message", 9, false, false, cut, has(orders)},
		{"cut in the middle of the message", 900, false, false, cut, inTheMiddle},
		{"cut after the message", 9, false, false, lose, has(orders)},
		{"cut after the message, a lone order", 1, false, false, lose, has(orders)},
		{"cut before COMMIT", 9, false, false, cut, has("COMMIT")},
		{"cut after COMMIT", 9, false, false, lose, has("COMMIT")},
		{"cut after COMMIT, a lone order", 1, false, false, lose, has("COMMIT")},
		{"cut before ROLLBACK", 9, true, false, cut, has("ROLLBACK")},
		{"cut after ROLLBACK", 9, true, false, lose, has("ROLLBACK")},
		{"cut before the look for existing orders", 9, true, false, cut, has("slot IS NOT NULL")},
		{"cut after the look for existing orders", 9, true, false, lose, has("slot IS NOT NULL")},
		{"in steps, cut before the transaction", 9, false, true, cut, has("START TRANSACTION")},
		{"in steps, cut before the orders", 9, false, true, cut, has(orders)},
		{"in steps, cut after the orders", 9, true, true, lose, has(orders)},
		{"in steps, cut before the events", 9, true, true, cut, has(events)},
		{"in steps, cut after the events", 9, false, true, lose, has(events)},
		{"in steps, cut before the stock", 9, false, true, cut, has(stock)},
		{"in steps, cut after the stock", 9, true, true, lose, has(stock)},
		{"in steps, cut before COMMIT", 9, false, true, cut, has("COMMIT")},
		{"in steps, cut after COMMIT", 9, true, true, lose, has("COMMIT")},
		{"cut after COMMIT and while looking for its orders", 9, false, false, func(p *faultproxy.Proxy, looking func([]byte) bool) *faultproxy.Fault {
			p.DropReply(has("COMMIT"))
			return p.CutOnRequest(looking)
		}, has("LOCK IN SHARE MODE")},
	}
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		openDB(t, target)
		db, proxy := throughProxy(t, target)
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				units := (tt.size + 1) / 2 // for half of them
				if tt.twice {
					units = tt.size + 1 // enough, so that the first round looks for no existing orders
				}
				voucher := onSale(t, db, int64(units), 1)
				batch, want := aBatch(voucher, tt.size), []string{}
				for i := range batch {
					want = append(want, map[bool]string{true: "placed", false: "sold-out"}[i < units])
				}
				if tt.twice {
					batch, want = append(batch, placement(voucher, batch[0].Order.UserID, "")), append(want, "already-ordered")
				}
				db.dialect.multiStatement = !tt.steps
				fault := tt.how(proxy, tt.at)
				place(t, db, batch...)
				fault.Wait(t)
				if got := verdicts(batch); !slices.Equal(got, want) {
					t.Fatalf("got %v, want %v", got, want)
				}
				if n := live(t, db, voucher); n != min(units, tt.size) {
					t.Errorf("%d orders stand, want %d", n, min(units, tt.size))
				}
				checkAnswers(t, db, batch)
			})
		}
	})
}

// The same for later changes of an order.
func TestOrders_BrokenConnectionChangesNoAnswer(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		direct := openDB(t, target)
		db, proxy := throughProxy(t, target)
		voucher := onSale(t, direct, 20, 1)
		user := service.UserID(0)
		for _, step := range []string{"pay", "pay P", "cancel", "expire"} {
			for name, break_ := range map[string]func(func([]byte) bool) *faultproxy.Fault{"before": proxy.CutOnRequest, "after": proxy.DropReply} {
				user++
				o := placed(t, direct, voucher, user)
				if step == "expire" {
					makeOverdue(t, direct, o.ID)
				}
				fault := break_(faultproxy.Contains("COMMIT"))
				_, err := change(t.Context(), db, o, strings.Replace(step, "P", fmt.Sprint("p-", o.ID), 1))
				fault.Wait(t)
				if err != nil {
					t.Errorf("%s, cut %s COMMIT: %v", step, name, err)
				}
			}
		}
		if n := live(t, direct, voucher); n != 4 {
			t.Errorf("%d orders live, want the 4 that were paid", n)
		}
	})
}

// If the reply to COMMIT never comes, on a connection that stays open, the answer is "unknown" in time, and repeating the
// request resolves it.
func TestPlace_SwallowedReplyIsUnknownInTime(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		openDB(t, target)
		db, proxy := throughProxy(t, target)
		voucher := onSale(t, db, 9, 1)
		batch := aBatch(voucher, 3)
		fault := proxy.SwallowReply(faultproxy.Contains("COMMIT"))
		const limit, grace = time.Second, 2 * time.Second
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		start := time.Now()
		NewOrders(db).Place(ctx, voucher, batch)
		if took := time.Since(start); took > limit+grace {
			t.Errorf("answered after %s, the time was %s", took, limit)
		}
		fault.Wait(t)
		if got := verdicts(batch); !slices.Equal(got, []string{"outcome-unknown", "outcome-unknown", "outcome-unknown"}) {
			t.Errorf("got %v (%v)", got, batch[0].Err)
		}
		if got := verdicts(place(t, db, aBatch(voucher, 3)...)); !slices.Equal(got, []string{"replayed", "replayed", "replayed"}) {
			t.Errorf("then got %v", got)
		}
	})
}

// If a message gets no answer, on a connection that stays open, as when the query is killed between two statements, it
// times out and the batch is placed again.
func TestPlace_MessageWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		t.Parallel()
		openDB(t, target)
		db, proxy := throughProxy(t, target)
		voucher := onSale(t, db, 9, 1)
		fault := proxy.SwallowReply(faultproxy.Contains("INSERT INTO voucher_order"))
		start := time.Now()
		got := verdicts(place(t, db, aBatch(voucher, 3)...))
		took := time.Since(start)
		fault.Wait(t)
		if !slices.Equal(got, []string{"placed", "placed", "placed"}) || took < messageTimeout || took > messageTimeout+4*time.Second {
			t.Errorf("%v after %s, want all of them placed soon after %s", got, took, messageTimeout)
		}
		if n := live(t, db, voucher); n != 3 {
			t.Errorf("%d stand", n)
		}
	})
}

// If the context ends while another transaction holds the stock row, nothing is left of the batch.
func TestPlace_TimeoutInALockWaitLeavesNothing(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		db, holder := openDB(t, target), openRaw(t, target, PoolOptions{})
		w := tap(t, db)
		voucher := onSale(t, db, 9, 1)
		release := hold(t, holder, voucher)
		batch := aBatch(voucher, 3)
		ctx, cancel := context.WithTimeout(t.Context(), 700*time.Millisecond)
		defer cancel()
		NewOrders(db).Place(ctx, voucher, batch)
		if w.count("UPDATE voucher_stock") == 0 {
			t.Fatal("the batch did not get as far as the hot row")
		}
		for _, p := range batch {
			if code := service.CodeOf(p.Err); code != service.CodeUnavailable && code != service.CodeUnknown {
				t.Errorf("got %v", p.Err)
			}
		}
		release()
		if got := verdicts(place(t, db, aBatch(voucher, 3)...)); !slices.Equal(got, []string{"placed", "placed", "placed"}) {
			t.Errorf("then got %v", got)
		}
		if n, left := live(t, db, voucher), stockOf(t, db, voucher); n != 3 || left != 6 {
			t.Errorf("%d stand, %d left", n, left)
		}
	})
}

// A client that stops while it holds the stock row holds it only as long as the server keeps an idle session.
func TestPlace_HangingClientReleasesTheStockRow(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		t.Parallel()
		direct := openDB(t, target)
		db, proxy := throughProxy(t, target)
		voucher := onSale(t, direct, 9, 1)
		var hung atomic.Bool
		held := make(chan struct{})
		tap(t, db).set(func(w *wire) {
			w.after = func(query string, err error) error {
				if strings.Contains(query, "UPDATE voucher_stock") && hung.CompareAndSwap(false, true) {
					proxy.Hang()
					close(held)
				}
				return err
			}
		})
		first := make(chan string)
		go func() { first <- verdicts(place(t, db, placement(voucher, 1, "")))[0] }()
		<-held
		start := time.Now()
		if got := verdicts(place(t, direct, placement(voucher, 2, ""))); got[0] != "placed" {
			t.Errorf("the next client: %v", got)
		}
		took := time.Since(start)
		t.Logf("the row was held for %s", took)
		if took < time.Second || took > sessionIdle+4*time.Second {
			t.Errorf("the row was held for %s, want about %s", took, sessionIdle)
		}
		proxy.Resume()
		if got := <-first; got != "placed" { // the server ended its session, so it was tried again
			t.Errorf("the client that hung: %s", got)
		}
		if n := live(t, direct, voucher); n != 2 {
			t.Errorf("%d orders stand", n)
		}
	})
}
