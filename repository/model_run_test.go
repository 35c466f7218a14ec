package repository

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"seckill/repository/repotest/dbtest"
	"seckill/repository/repotest/faultproxy"
)

// A test runs as many histories as fit into some seconds. To run a certain number, set historiesVariable; to repeat one
// that failed, set seedVariable to the seed in the failure.
const (
	historiesVariable = "SECKILL_TEST_HISTORIES"
	seedVariable      = "SECKILL_TEST_SEED"
	historiesTime     = 8 * time.Second
)

// Random histories, with connections that break and instances that crash, leave in every database the rows of the model:
// each order, event, payment and unit, after each step.
func TestModel(t *testing.T) {
	t.Parallel()
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		t.Parallel()
		db, proxy := modelDB(t, target)
		wire := tap(t, db)
		first, last := histories(t)
		end := time.Now().Add(historiesTime)
		played := uint64(0)
		steps := 0
		for seed := first; seed != last && (last != 0 || played < 10 || time.Now().Before(end)); seed++ {
			h := &history{t: t, db: db, wire: wire, proxy: proxy, limit: 20 * time.Second, rng: rand.New(rand.NewPCG(seed, 0))}
			if err := h.run(20); err != nil {
				t.Fatalf("%s=%d: %v", seedVariable, seed, err)
			}
			played++
			steps += len(h.log)
		}
		t.Logf("%d histories from seed %d, %d steps, %d transactions", played, first, steps, wire.transactions())
	})
}

// modelDB opens a database for histories.
func modelDB(t *testing.T, target dbtest.Database) (db *DB, proxy *faultproxy.Proxy) {
	t.Helper()
	db = openDB(t, target)
	// For the comparison only: the shop never looks for the events of an order.
	if err := db.gorm.Exec("CREATE INDEX of_order ON outbox_event (biz_id)").Error; err != nil {
		t.Fatal(err)
	}
	if target.Engine != dbtest.SQLite {
		return throughProxy(t, target)
	}
	if err := db.gorm.Exec("PRAGMA synchronous = OFF").Error; err != nil { // the test does not lose power
		t.Fatal(err)
	}
	return db, nil
}

// histories returns the seeds to run, from first to before last. Without last: until the time is over.
func histories(t *testing.T) (first, last uint64) {
	t.Helper()
	number := func(name string) (n uint64, set bool) {
		text := os.Getenv(name)
		if text == "" {
			return 0, false
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return n, true
	}
	if seed, set := number(seedVariable); set {
		return seed, seed + 1
	}
	first = uint64(rand.Uint32())
	if n, set := number(historiesVariable); set {
		return first, first + n
	}
	return first, 0
}
