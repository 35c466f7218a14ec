package verdict

import (
	"bytes"
	"database/sql"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	sqlite "github.com/libtnb/sqlite"
	"go.uber.org/goleak"

	"seckill/loadtest"
	"seckill/repository"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a database and the claims about it.
type fixture struct {
	t      *testing.T
	db     *repository.DB
	raw    *sql.DB
	claims *Claims
	at     time.Time
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	path := filepath.Join(t.TempDir(), "seckill.db")
	db, err := repository.OpenSQLite(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	raw, err := sql.Open(sqlite.DriverName, "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = raw.Close() })
	return &fixture{t: t, db: db, raw: raw, claims: NewClaims(), at: time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC)}
}

// insert puts an order of voucher 7 into the database. status 3 is closed.
func (f *fixture) insert(id, user int64, request string, status int) {
	f.t.Helper()
	var slot any = 0
	if status == 3 {
		slot = nil
	}
	_, err := f.raw.Exec(`INSERT INTO voucher_order (id, voucher_id, user_id, slot, request_id, status, version, price_cents, created_at)
		VALUES (?, 7, ?, ?, ?, ?, 1, 100, 0)`, id, user, slot, request, status)
	if err != nil {
		f.t.Fatal(err)
	}
}

// answer adds an answer to a request to place an order, a second after the previous one.
func (f *fixture) answer(user int64, key string, outcome loadtest.Outcome, order string) {
	f.t.Helper()
	f.add(&loadtest.Entry{Op: loadtest.OpPlace, User: user, Voucher: "7", Key: key, Outcome: outcome, Order: order})
}

// list adds what a user's list of orders said.
func (f *fixture) list(user int64, order string) {
	f.t.Helper()
	f.add(&loadtest.Entry{Op: loadtest.OpList, User: user, Voucher: "7", Outcome: loadtest.Done, Order: order})
}

func (f *fixture) add(e *loadtest.Entry) {
	f.t.Helper()
	f.at = f.at.Add(time.Second)
	e.At, e.Took = f.at, 10*time.Millisecond
	f.claims.Add(e)
	if err := f.claims.Err(); err != nil {
		f.t.Fatal(err)
	}
}

// check returns the verdict over the claims and how often each check is broken. The audit is left out, since the orders
// here have no vouchers and no events.
func (f *fixture) check(complete bool) (*Verdict, map[string]int64) {
	f.t.Helper()
	v := New()
	if err := f.claims.check(f.t.Context(), f.db, complete, v); err != nil {
		f.t.Fatal(err)
	}
	broken := map[string]int64{}
	for _, finding := range v.Findings {
		if finding.OK != (finding.Broken == 0) || len(finding.Rows) == 0 != finding.OK {
			f.t.Errorf("finding contradicts itself: %+v", finding)
		}
		if !finding.OK {
			broken[finding.ID] = finding.Broken
		}
	}
	if v.OK != (len(broken) == 0) || len(v.Broken()) != len(broken) {
		f.t.Errorf("the verdict is %v (%v) with %v broken", v.OK, v.Broken(), broken)
	}
	return v, broken
}

// sound is a sale of which everything is true.
func (f *fixture) sound() {
	f.insert(10, 1, "a", 1)
	f.answer(1, "a", loadtest.Placed, "10")
	f.answer(1, "a", loadtest.Replayed, "10")
	f.answer(1, "again", "already-ordered", "10")
	f.insert(11, 2, "b", 3)
	f.answer(2, "b", loadtest.Placed, "11")
	f.answer(3, "c", "sold-out", "")
	f.insert(12, 4, "d", 2)
	f.answer(4, "d", loadtest.Timeout, "") // placed, but the answer was lost
	f.answer(4, "d", "in-progress", "")
	f.answer(4, "d", loadtest.Replayed, "12")
	f.answer(5, "e", loadtest.Broken, "") // not placed
	f.answer(5, "e", "sold-out", "")
	f.insert(13, 6, "13", 1) // without a key, the order's own id is its name
	f.answer(6, "", loadtest.Broken, "")
	f.list(6, "13")
	f.answer(7, "", loadtest.Timeout, "")
	f.list(7, "")
}

func TestClaims_SoundSale(t *testing.T) {
	for _, complete := range []bool{false, true} {
		f := newFixture(t)
		f.sound()
		for range 2 { // a check changes nothing
			v, broken := f.check(complete)
			if len(broken) != 0 {
				t.Errorf("broken: %v", broken)
			}
			if v.Unknown != 4 || v.Unresolved != 0 || v.Acknowledged != 4 || v.Answers[loadtest.Placed] != 2 || v.Requests != 14 {
				t.Errorf("verdict %+v", v)
			}
			if len(v.Sales) != 1 || v.Sales[0] != (Sale{Voucher: 7, Orders: 4, Live: 3, Paid: 1, Closed: 1}) || v.Sale("7") != v.Sales[0] {
				t.Errorf("sales %+v", v.Sales)
			}
		}
	}
}

// Each defect is planted once, into a sale that is sound otherwise.
func TestClaims_FindEachDefect(t *testing.T) {
	for name, c := range map[string]struct {
		plant    func(f *fixture)
		complete bool
		want     map[string]int64
	}{
		"an acknowledged order is lost": {
			plant: func(f *fixture) { f.answer(20, "x", loadtest.Placed, "20") },
			want:  map[string]int64{orderLost: 1},
		},
		"an order that stood in the way is lost": {
			plant: func(f *fixture) { f.answer(20, "x", "already-ordered", "20") },
			want:  map[string]int64{orderLost: 1},
		},
		"the order is another user's": {
			plant: func(f *fixture) { f.insert(20, 21, "x", 1); f.answer(20, "x", loadtest.Placed, "20") },
			want:  map[string]int64{orderMismatch: 1},
		},
		"the order is another request's": {
			plant: func(f *fixture) { f.insert(20, 20, "y", 1); f.answer(20, "x", loadtest.Placed, "20") },
			want:  map[string]int64{orderMismatch: 1},
		},
		"a refused request has an order": {
			plant: func(f *fixture) { f.insert(20, 20, "x", 1); f.answer(20, "x", "sold-out", "") },
			want:  map[string]int64{orderRefused: 1},
		},
		"a failed request has an order": {
			plant: func(f *fixture) { f.insert(20, 20, "x", 1); f.answer(20, "x", "internal", "") },
			want:  map[string]int64{orderRefused: 1},
		},
		"an unknown one was settled as refused, and has an order": {
			plant: func(f *fixture) {
				f.insert(20, 20, "x", 1)
				f.answer(20, "x", "outcome-unknown", "")
				f.answer(20, "x", "sold-out", "")
			},
			want: map[string]int64{orderRefused: 1},
		},
		"an unknown outcome was not settled": {
			plant: func(f *fixture) { f.insert(20, 20, "x", 1); f.answer(20, "x", loadtest.Timeout, "") },
			want:  map[string]int64{outcomeUnresolved: 1},
		},
		"an unknown outcome was answered with not now": {
			plant: func(f *fixture) { f.answer(20, "x", loadtest.Timeout, ""); f.answer(20, "x", "busy", "") },
			want:  map[string]int64{outcomeUnresolved: 1},
		},
		"the final answer came before the unknown one": {
			plant: func(f *fixture) { f.answer(20, "x", "sold-out", ""); f.answer(20, "x", loadtest.Broken, "") },
			want:  map[string]int64{outcomeUnresolved: 1},
		},
		"an unknown outcome without a key was not looked up": {
			plant: func(f *fixture) { f.insert(20, 20, "20", 1); f.answer(20, "", loadtest.Timeout, "") },
			want:  map[string]int64{outcomeUnresolved: 1},
		},
		"a refused request without a key has an order": {
			plant: func(f *fixture) { f.insert(20, 20, "20", 1); f.answer(20, "", "sold-out", "") },
			want:  map[string]int64{orderUnclaimed: 1},
		},
		"an order that nobody asked for": {
			plant:    func(f *fixture) { f.insert(20, 20, "x", 1) },
			complete: true,
			want:     map[string]int64{orderUnclaimed: 1},
		},
		"one order for two users": {
			plant: func(f *fixture) { f.answer(20, "x", loadtest.Placed, "10") },
			want:  map[string]int64{orderTwoUsers: 1, orderCreatedTwice: 1, orderMismatch: 1},
		},
		"two orders for one request": {
			plant: func(f *fixture) { f.insert(20, 1, "other", 3); f.answer(1, "a", loadtest.Replayed, "20") },
			want:  map[string]int64{requestTwoOrders: 1, orderMismatch: 1},
		},
		"one order twice as new": {
			plant: func(f *fixture) { f.answer(1, "a", loadtest.Placed, "10") },
			want:  map[string]int64{orderCreatedTwice: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			f.sound()
			c.plant(f)
			_, broken := f.check(c.complete)
			if len(broken) != len(c.want) {
				t.Errorf("broken %v, want %v", broken, c.want)
			}
			for check, n := range c.want {
				if broken[check] != n {
					t.Errorf("%q is broken %d times, want %d; all: %v", check, broken[check], n, broken)
				}
			}
		})
	}
}

func TestReadJournal(t *testing.T) {
	f := newFixture(t)
	var file bytes.Buffer
	journal := loadtest.NewJournal(&file)
	entry := &loadtest.Entry{At: f.at, Op: loadtest.OpPlace, User: 1, Voucher: "7", Key: "a", Outcome: loadtest.Placed, Status: 201, Order: "10"}
	journal.Write(entry)
	if err := journal.Flush(); err != nil {
		t.Fatal(err)
	}
	claims, err := ReadJournal(&file)
	if err != nil {
		t.Fatal(err)
	}
	f.claims = claims
	if _, broken := f.check(false); broken[orderLost] != 1 {
		t.Errorf("the lost order of a journal was not found: %v", broken)
	}
}

func TestClaims_RefuseMalformedIDs(t *testing.T) {
	for _, e := range []loadtest.Entry{
		{Op: loadtest.OpPlace, User: 1, Voucher: "x", Outcome: loadtest.Placed, Order: "1"},
		{Op: loadtest.OpPlace, User: 1, Voucher: "7", Outcome: loadtest.Placed, Order: "007"},
	} {
		c := NewClaims()
		if c.Add(&e); c.Err() == nil {
			t.Errorf("%+v was accepted", e)
		}
	}
}

func TestClaims_Owned(t *testing.T) {
	f := newFixture(t)
	f.claims = NewOrderClaims()
	own := func(want Owned) {
		t.Helper()
		if got := f.claims.Owned(1); got != want {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	f.answer(1, "a", loadtest.Placed, "1")
	f.answer(1, "a", loadtest.Replayed, "1")
	f.answer(2, "b", "already-ordered", "9") // an order of before
	f.answer(3, "c", "sold-out", "")
	own(Owned{Orders: 1, Live: 1, Holders: 1})
	f.answer(1, "d", loadtest.Placed, "2")
	own(Owned{Orders: 2, Live: 2, Holders: 1, Duplicates: 1})
	f.add(&loadtest.Entry{Op: loadtest.OpCancel, User: 1, Voucher: "7", Outcome: loadtest.Done, Order: "1"})
	own(Owned{Orders: 2, Live: 1, Holders: 1})
	f.answer(4, "e", loadtest.Placed, "2")
	own(Owned{Orders: 2, Live: 1, Holders: 1, Shared: 1})
	if _, err := Check(t.Context(), f.db, f.claims, Options{}); err == nil {
		t.Error("claims without requests were checked")
	}
}
