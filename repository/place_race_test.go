package repository

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seckill/repository/repotest/dbtest"
	"seckill/service"
	"seckill/service/idgen"
)

// tally counts verdicts of many goroutines.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *tally) add(batch []*service.Placement) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	for _, v := range verdicts(batch) {
		c.n[v]++
	}
}

// live counts the orders that hold a unit.
func live(t *testing.T, db *DB, voucher idgen.ID) (n int) {
	t.Helper()
	if err := db.gorm.Raw("SELECT COUNT(*) FROM voucher_order WHERE voucher_id = ? AND slot IS NOT NULL", voucher).Scan(&n).Error; err != nil {
		t.Fatal(err)
	}
	return n
}

// One user sends 64 requests at the same time to two instances, each in its own transaction: as many orders are placed as
// the limit allows.
func TestPlace_OneUserManyRequestsAtOnce(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, dbs [2]*DB) {
		for _, limit := range []int{1, 3, 1, 3} {
			voucher := onSale(t, dbs[0], 10, limit)
			var got tally
			var all []func()
			for i := range 64 {
				all = append(all, func() { got.add(place(t, dbs[i%2], placement(voucher, 1, ""))) })
			}
			atOnce(all...)
			if got.n["placed"] != limit || got.n["already-ordered"] != 64-limit {
				t.Errorf("limit %d: %v", limit, got.n)
			}
			if n := live(t, dbs[0], voucher); n != limit {
				t.Errorf("limit %d: %d orders stand", limit, n)
			}
		}
	})
}

// The same request 32 times at once is one order and one answer, also where the limit would allow more.
func TestPlace_OneRequestManyTimesAtOnce(t *testing.T) {
	t.Parallel()
	eachPair(t, func(t *testing.T, dbs [2]*DB) {
		voucher := onSale(t, dbs[0], 50, 40)
		var got tally
		ids := make([]idgen.ID, 32)
		var all []func()
		for i := range ids {
			all = append(all, func() {
				batch := place(t, dbs[i%2], placement(voucher, 1, "k"))
				got.add(batch)
				ids[i] = batch[0].Order.ID
			})
		}
		atOnce(all...)
		if got.n["placed"] != 1 || got.n["replayed"] != 31 || len(slices.Compact(ids)) != 1 {
			t.Errorf("%v, orders %v", got.n, ids)
		}
	})
}

// Two instances sell one voucher until both get "sold out": all units are sold, and not one more.
func TestPlace_TwoInstancesSellOut(t *testing.T) {
	t.Parallel()
	const total, sellers = 700, 6
	eachPair(t, func(t *testing.T, dbs [2]*DB) {
		voucher := onSale(t, dbs[0], total, 1)
		var user atomic.Int64
		var got tally
		var all []func()
		for i := range sellers {
			all = append(all, func() {
				for size := 1; ; size = size%40 + 13 {
					var batch []*service.Placement
					for range size {
						batch = append(batch, placement(voucher, service.UserID(user.Add(1)), ""))
					}
					place(t, dbs[i%2], batch...)
					got.add(batch)
					if slices.Contains(verdicts(batch), "sold-out") {
						return
					}
				}
			})
		}
		atOnce(all...)
		if got.n["placed"] != total || len(got.n) != 2 {
			t.Errorf("%v, want %d placed and the others sold out", got.n, total)
		}
		if n, left := live(t, dbs[0], voucher), stockOf(t, dbs[1], voucher); n != total || left != 0 {
			t.Errorf("%d live, %d left", n, left)
		}
	})
}

// Twenty vouchers share four connections: no order waits for a connection that it holds itself.
func TestPlace_ManyVouchersFewConnections(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		openDB(t, target)
		db := openRaw(t, target, PoolOptions{MaxOpen: 4})
		var all []func()
		for range 20 {
			voucher := onSale(t, db, 50, 1)
			all = append(all, func() {
				var got tally
				for first := range service.UserID(3) {
					var batch []*service.Placement
					for user := range service.UserID(25) {
						batch = append(batch, placement(voucher, first*20+user+1, "")) // five of them for the second time
					}
					got.add(place(t, db, batch...))
				}
				if got.n["placed"] != 50 || got.n["already-ordered"]+got.n["sold-out"] != 25 {
					t.Errorf("%v", got.n)
				}
			})
		}
		atOnce(all...)
		if open := db.Stats().MaxOpenConnections; open != 4 {
			t.Errorf("%d connections allowed", open)
		}
	})
}

// countErrors counts the errors of a DB's statements by number.
func countErrors(w *wire, number uint16) *atomic.Int32 {
	var n atomic.Int32
	w.set(func(w *wire) {
		w.after = func(_ string, err error) error {
			var my *mysql.MySQLError
			if errors.As(err, &my) && my.Number == number {
				n.Add(1)
			}
			return err
		}
	})
	return &n
}

// Two instances place orders of the same users in opposite order until the server finds a deadlock. The transaction that
// it rolls back is tried again: each user gets one order, the other request its refusal.
func TestPlace_DeadlockOfTwoInstances(t *testing.T) {
	t.Parallel()
	const users = 100
	eachPair(t, func(t *testing.T, dbs [2]*DB) {
		deadlocks := []*atomic.Int32{countErrors(tap(t, dbs[0]), 1213), countErrors(tap(t, dbs[1]), 1213)}
		rounds := 0
		for ; rounds < 200 && deadlocks[0].Load()+deadlocks[1].Load() < 3; rounds++ {
			voucher := onSale(t, dbs[0], 2*users, 1)
			var up, down []*service.Placement
			for user := range service.UserID(users) {
				up = append(up, placement(voucher, user+1, ""))
				down = append(down, placement(voucher, users-user, ""))
			}
			var got tally
			atOnce(func() { got.add(place(t, dbs[0], up...)) }, func() { got.add(place(t, dbs[1], down...)) })
			if got.n["placed"] != users || got.n["already-ordered"] != users {
				t.Fatalf("%v", got.n)
			}
		}
		if deadlocks[0].Load()+deadlocks[1].Load() == 0 {
			t.Fatalf("no deadlock in %d rounds: the test shows nothing", rounds)
		}
		t.Logf("%d and %d deadlocks in %d rounds", deadlocks[0].Load(), deadlocks[1].Load(), rounds)
	})
}

// Another transaction holds the stock row for longer than a statement waits: the order is tried again.
func TestPlace_LockWaitIsRetried(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, target dbtest.Database) {
		t.Parallel()
		db, holder := openDB(t, target), openRaw(t, target, PoolOptions{})
		voucher := onSale(t, db, 5, 1)
		waits := countErrors(tap(t, db), 1205)
		release := hold(t, holder, voucher)
		done := make(chan []*service.Placement)
		go func() { done <- place(t, db, placement(voucher, 1, ""), placement(voucher, 2, "")) }()
		for waits.Load() == 0 {
			time.Sleep(20 * time.Millisecond) // the server returns the error after lockWait
			if t.Context().Err() != nil {
				t.Fatal("no lock wait")
			}
		}
		release()
		if got := verdicts(<-done); !slices.Equal(got, []string{"placed", "placed"}) {
			t.Errorf("got %v", got)
		}
	})
}

// hold locks the stock row of a voucher until release is called.
func hold(t *testing.T, db *DB, voucher idgen.ID) (release func()) {
	t.Helper()
	tx := db.session(context.Background()).Begin()
	if _, _, err := lockTerms(tx, db.dialect, voucher); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	release = func() { once.Do(func() { tx.Rollback() }) }
	t.Cleanup(release)
	return release
}

// A client sends as its key the id of a later order of its own that has no key. Both requests get an answer, and block no
// others.
func TestPlace_RequestIDIsTheIDOfALaterOrder(t *testing.T) {
	t.Parallel()
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db := openDB(t, target)
		w := tap(t, db)
		one, other := onSale(t, db, 5, 2), onSale(t, db, 5, 2)
		for _, voucher := range []idgen.ID{one, other} {
			later, neighbour := placement(voucher, 1, ""), placement(voucher, 2, "")
			first := place(t, db, placement(one, 1, later.Order.RequestID))[0]
			if first.Err != nil {
				t.Fatal(first.Err)
			}
			before := w.transactions()
			got := verdicts(place(t, db, later, neighbour))
			want := "replayed"
			if voucher == other {
				want = string(service.CodeKeyReused)
			}
			if !slices.Equal(got, []string{want, "placed"}) {
				t.Errorf("got %v, want the neighbour placed and %s", got, want)
			}
			if n := w.transactions() - before; n > 3 {
				t.Errorf("it took %d transactions", n)
			}
		}
	})
}
