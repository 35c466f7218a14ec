package reconcile

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

// books is a database and what clients were told about it.
type books struct {
	t    *testing.T
	db   *repository.DB
	raw  *sql.DB
	book *Book
	at   time.Time
}

func newBooks(t *testing.T) *books {
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
	return &books{t: t, db: db, raw: raw, book: NewBook(), at: time.Date(2026, 11, 11, 0, 0, 0, 0, time.UTC)}
}

// holds puts an order of voucher 7 into the database. status 3 is closed.
func (b *books) holds(id, user int64, request string, status int) {
	b.t.Helper()
	var slot any = 0
	if status == 3 {
		slot = nil
	}
	_, err := b.raw.Exec(`INSERT INTO voucher_order (id, voucher_id, user_id, slot, request_id, status, version, price_cents, created_at)
		VALUES (?, 7, ?, ?, ?, ?, 1, 100, 0)`, id, user, slot, request, status)
	if err != nil {
		b.t.Fatal(err)
	}
}

// told adds an answer to a request to place an order, a second after the one before.
func (b *books) told(user int64, key string, outcome loadtest.Outcome, order string) {
	b.t.Helper()
	b.add(&loadtest.Entry{Op: loadtest.OpPlace, User: user, Voucher: "7", Key: key, Outcome: outcome, Order: order})
}

// listed adds what a user's list of orders said.
func (b *books) listed(user int64, order string) {
	b.t.Helper()
	b.add(&loadtest.Entry{Op: loadtest.OpList, User: user, Voucher: "7", Outcome: loadtest.Done, Order: order})
}

func (b *books) add(e *loadtest.Entry) {
	b.t.Helper()
	b.at = b.at.Add(time.Second)
	e.At, e.Took = b.at, 10*time.Millisecond
	if err := b.book.Add(e); err != nil {
		b.t.Fatal(err)
	}
}

// check returns how often each check is broken.
func (b *books) check(opts Options) (Verdict, map[string]int64) {
	b.t.Helper()
	v, err := b.book.Check(b.t.Context(), b.db, opts)
	if err != nil {
		b.t.Fatal(err)
	}
	broken := map[string]int64{}
	for _, f := range v.Findings {
		if f.OK != (f.Broken == 0) || len(f.Rows) == 0 != f.OK {
			b.t.Errorf("finding contradicts itself: %+v", f)
		}
		if !f.OK {
			broken[f.Check] = f.Broken
		}
	}
	if v.OK != (len(broken) == 0) {
		b.t.Errorf("the verdict is %v with %v broken", v.OK, broken)
	}
	return v, broken
}

// sound is a sale of which everything is true.
func (b *books) sound() {
	b.holds(10, 1, "a", 1)
	b.told(1, "a", loadtest.Placed, "10")
	b.told(1, "a", loadtest.Replayed, "10")
	b.told(1, "again", "already-ordered", "10")
	b.holds(11, 2, "b", 3)
	b.told(2, "b", loadtest.Placed, "11")
	b.told(3, "c", "sold-out", "")
	b.holds(12, 4, "d", 2)
	b.told(4, "d", loadtest.Timeout, "") // placed, but the answer was lost
	b.told(4, "d", "in-progress", "")
	b.told(4, "d", loadtest.Replayed, "12")
	b.told(5, "e", loadtest.Broken, "") // not placed
	b.told(5, "e", "sold-out", "")
	b.holds(13, 6, "13", 1) // without a key, the order's own id is its name
	b.told(6, "", loadtest.Broken, "")
	b.listed(6, "13")
	b.told(7, "", loadtest.Timeout, "")
	b.listed(7, "")
}

func TestSoundBooksAgree(t *testing.T) {
	for _, whole := range []bool{false, true} {
		b := newBooks(t)
		b.sound()
		for range 2 { // a check changes nothing
			v, broken := b.check(Options{Whole: whole})
			if len(broken) != 0 {
				t.Errorf("broken: %v", broken)
			}
			if v.Unknown != 4 || v.Open != 0 || v.Told != 4 || v.Outcomes[loadtest.Placed] != 2 || v.Entries != 14 {
				t.Errorf("verdict %+v", v)
			}
			if len(v.Sales) != 1 || v.Sales[0] != (Sale{Voucher: 7, Orders: 4, Live: 3, Paid: 1, Closed: 1, Buyers: 3}) {
				t.Errorf("sales %+v", v.Sales)
			}
		}
	}
}

// Each defect that the book is for is planted once, into books that are sound otherwise.
func TestEveryDefectIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		plant func(b *books)
		whole bool
		want  map[string]int64
	}{
		"an acknowledged order is lost": {
			plant: func(b *books) { b.told(20, "x", loadtest.Placed, "20") },
			want:  map[string]int64{checkExists: 1},
		},
		"an order that stood in the way is lost": {
			plant: func(b *books) { b.told(20, "x", "already-ordered", "20") },
			want:  map[string]int64{checkExists: 1},
		},
		"the order is another user's": {
			plant: func(b *books) { b.holds(20, 21, "x", 1); b.told(20, "x", loadtest.Placed, "20") },
			want:  map[string]int64{checkSame: 1},
		},
		"the order is another request's": {
			plant: func(b *books) { b.holds(20, 20, "y", 1); b.told(20, "x", loadtest.Placed, "20") },
			want:  map[string]int64{checkSame: 1},
		},
		"a refused request has an order": {
			plant: func(b *books) { b.holds(20, 20, "x", 1); b.told(20, "x", "sold-out", "") },
			want:  map[string]int64{checkFailed: 1},
		},
		"a failed request has an order": {
			plant: func(b *books) { b.holds(20, 20, "x", 1); b.told(20, "x", "internal", "") },
			want:  map[string]int64{checkFailed: 1},
		},
		"an unknown one was settled as refused, and has an order": {
			plant: func(b *books) {
				b.holds(20, 20, "x", 1)
				b.told(20, "x", "outcome-unknown", "")
				b.told(20, "x", "sold-out", "")
			},
			want: map[string]int64{checkFailed: 1},
		},
		"an unknown outcome was not settled": {
			plant: func(b *books) { b.holds(20, 20, "x", 1); b.told(20, "x", loadtest.Timeout, "") },
			want:  map[string]int64{checkSettled: 1},
		},
		"an unknown outcome was answered with not now": {
			plant: func(b *books) { b.told(20, "x", loadtest.Timeout, ""); b.told(20, "x", "busy", "") },
			want:  map[string]int64{checkSettled: 1},
		},
		"the final answer came before the unknown one": {
			plant: func(b *books) { b.told(20, "x", "sold-out", ""); b.told(20, "x", loadtest.Broken, "") },
			want:  map[string]int64{checkSettled: 1},
		},
		"an unknown outcome without a key was not looked up": {
			plant: func(b *books) { b.holds(20, 20, "20", 1); b.told(20, "", loadtest.Timeout, "") },
			want:  map[string]int64{checkSettled: 1},
		},
		"a refused request without a key has an order": {
			plant: func(b *books) { b.holds(20, 20, "20", 1); b.told(20, "", "sold-out", "") },
			want:  map[string]int64{checkTold: 1},
		},
		"an order that nobody asked for": {
			plant: func(b *books) { b.holds(20, 20, "x", 1) },
			whole: true,
			want:  map[string]int64{checkTold: 1},
		},
		"one order for two users": {
			plant: func(b *books) { b.told(20, "x", loadtest.Placed, "10") },
			want:  map[string]int64{checkOneUser: 1, checkOneCreation: 1, checkSame: 1},
		},
		"two orders for one request": {
			plant: func(b *books) { b.holds(20, 1, "other", 3); b.told(1, "a", loadtest.Replayed, "20") },
			want:  map[string]int64{checkOneOrder: 1, checkSame: 1},
		},
		"one order twice as new": {
			plant: func(b *books) { b.told(1, "a", loadtest.Placed, "10") },
			want:  map[string]int64{checkOneCreation: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBooks(t)
			b.sound()
			c.plant(b)
			_, broken := b.check(Options{Whole: c.whole})
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

func TestDuplicateOrdersAreCounted(t *testing.T) {
	b := newBooks(t)
	b.sound()
	if _, err := b.raw.Exec("DROP INDEX order_once_per_slot"); err != nil { // the guard off
		t.Fatal(err)
	}
	b.holds(20, 1, "x", 1)
	b.told(1, "x", loadtest.Placed, "20")
	v, _ := b.check(Options{})
	if v.Sales[0].Duplicates != 1 || v.Sales[0].Buyers != 3 {
		t.Errorf("%+v", v.Sales[0])
	}
}

func TestJournalFillsTheSameBook(t *testing.T) {
	b := newBooks(t)
	var file bytes.Buffer
	journal := loadtest.NewJournal(&file)
	entry := &loadtest.Entry{At: b.at, Op: loadtest.OpPlace, User: 1, Voucher: "7", Key: "a", Outcome: loadtest.Placed, Status: 201, Order: "10"}
	journal.Write(entry)
	if err := journal.Flush(); err != nil {
		t.Fatal(err)
	}
	book, err := Read(&file)
	if err != nil {
		t.Fatal(err)
	}
	b.book = book
	if _, broken := b.check(Options{}); broken[checkExists] != 1 {
		t.Errorf("the lost order of a journal was not found: %v", broken)
	}
}

func TestBookRefusesWhatNoShopSays(t *testing.T) {
	for _, e := range []loadtest.Entry{
		{Op: loadtest.OpPlace, User: 1, Voucher: "x", Outcome: loadtest.Placed, Order: "1"},
		{Op: loadtest.OpPlace, User: 1, Voucher: "7", Outcome: loadtest.Placed, Order: "007"},
	} {
		if err := NewBook().Add(&e); err == nil {
			t.Errorf("%+v was taken", e)
		}
	}
}
