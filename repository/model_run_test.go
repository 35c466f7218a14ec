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

// To play more histories than usual, set historiesVariable to their number. To play one again that failed, set
// seedVariable to the seed that the failure names.
const (
	historiesVariable = "SECKILL_TEST_HISTORIES"
	seedVariable      = "SECKILL_TEST_SEED"
)

// Random histories, with connections that break and instances that crash in the middle, leave in every database what
// the model says: each order, event, payment and unit, after each step.
func TestModel(t *testing.T) {
	t.Parallel()
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		t.Parallel()
		db, proxy, count := modelDB(t, target)
		wire := tap(t, db)
		count = fromEnvironment(t, historiesVariable, count)
		first := fromEnvironment(t, seedVariable, rand.Uint64())
		if os.Getenv(seedVariable) != "" {
			count = 1
		}
		steps := 0
		for seed := first; seed < first+count; seed++ {
			h := &history{t: t, db: db, wire: wire, proxy: proxy, limit: 20 * time.Second, rng: rand.New(rand.NewPCG(seed, 0))}
			if err := h.run(20); err != nil {
				t.Fatalf("%s=%d: %v", seedVariable, seed, err)
			}
			steps += len(h.log)
		}
		t.Logf("%d histories from seed %d, %d steps, %d transactions", count, first, steps, wire.count("BEGIN"))
	})
}

// modelDB opens a database for histories, and says how many it should be asked to play.
func modelDB(t *testing.T, target dbtest.Database) (db *DB, proxy *faultproxy.Proxy, histories uint64) {
	t.Helper()
	db = openDB(t, target)
	// The shop never looks for the events of an order, the comparison does all the time.
	if err := db.gorm.Exec("CREATE INDEX of_order ON outbox_event (biz_id)").Error; err != nil {
		t.Fatal(err)
	}
	if target.Engine != dbtest.SQLite {
		db, proxy = throughProxy(t, target)
		return db, proxy, 40
	}
	if err := db.gorm.Exec("PRAGMA synchronous = OFF").Error; err != nil { // no power fails here
		t.Fatal(err)
	}
	return db, nil, 1000
}

func fromEnvironment(t *testing.T, name string, usual uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return usual
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}
