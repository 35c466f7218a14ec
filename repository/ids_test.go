package repository

import (
	"errors"
	"math"
	"testing"
	"time"

	"seckill/repository/repotest/dbtest"
	"seckill/service/idgen"
	"seckill/service/idgen/idgentest"
)

func TestWorkerLeases(t *testing.T) {
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db := openDB(t, target)
		idgentest.RunLeases(t, func(t *testing.T) idgentest.LeaseBackend {
			for _, table := range []string{"worker_lease", "worker_layout"} {
				if err := db.gorm.Exec("DELETE FROM " + table).Error; err != nil {
					t.Fatal(err)
				}
			}
			return idgentest.LeaseBackend{
				Open: func(t *testing.T) idgen.LeaseStore { return process(t, db, target).WorkerLeases() },
				TTL:  800 * time.Millisecond,
				Long: time.Minute,
			}
		})
	})
}

// process opens the database again, as another process would have it. SQLite has one process only.
func process(t *testing.T, db *DB, target dbtest.Database) *DB {
	t.Helper()
	if target.Engine == dbtest.SQLite {
		return db
	}
	return openRaw(t, target, PoolOptions{MaxOpen: 2})
}

func TestSnowflakeOnWorkerLeases(t *testing.T) {
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db := openDB(t, target)
		idgentest.Run(t, func(*testing.T) idgentest.New {
			return func(t *testing.T) idgen.Generator {
				g, err := idgen.NewSnowflake(t.Context(), process(t, db, target).WorkerLeases(), idgen.WithOwner("test"))
				if err != nil {
					t.Fatal(err)
				}
				return g
			}
		})
	})
}

func TestIDRanges(t *testing.T) {
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db := openDB(t, target)
		reset := func(t *testing.T, maxID, step int64) {
			t.Helper()
			if err := db.gorm.Exec("UPDATE leaf_alloc SET max_id = ?, step = ?", maxID, step).Error; err != nil {
				t.Fatal(err)
			}
		}
		t.Run("suite", func(t *testing.T) {
			idgentest.RunRanges(t, func(t *testing.T) func(*testing.T) idgen.RangeStore {
				reset(t, 0, 1)
				return func(t *testing.T) idgen.RangeStore { return process(t, db, target).IDRanges(OrderIDs) }
			})
		})
		t.Run("generator", func(t *testing.T) {
			idgentest.Run(t, func(t *testing.T) idgentest.New {
				reset(t, 0, 1000)
				return func(t *testing.T) idgen.Generator {
					g, err := idgen.NewSegment(t.Context(), process(t, db, target).IDRanges(OrderIDs))
					if err != nil {
						t.Fatal(err)
					}
					return g
				}
			})
		})
		t.Run("minimum", func(t *testing.T) {
			reset(t, 100, 5000)
			got, err := db.IDRanges(OrderIDs).Allocate(t.Context(), 10)
			if want := (idgen.Range{First: 101, Count: 5000, Least: 5000}); got != want || err != nil {
				t.Errorf("Allocate(10) = %+v, %v, want %+v", got, err, want)
			}
		})
		t.Run("end", func(t *testing.T) {
			reset(t, math.MaxInt64-10, 1)
			for _, n := range []int64{11, math.MaxInt64} {
				if got, err := db.IDRanges(OrderIDs).Allocate(t.Context(), n); !errors.Is(err, idgen.ErrExhausted) {
					t.Errorf("Allocate(%d) = %+v, %v with 10 left, want ErrExhausted", n, got, err)
				}
			}
			if got, err := db.IDRanges(OrderIDs).Allocate(t.Context(), 10); err != nil || got.First+9 != math.MaxInt64 {
				t.Errorf("Allocate(10) = %+v, %v, want the last ones", got, err)
			}
		})
		t.Run("claims", func(t *testing.T) { testClaims(t, db.IDRanges("claims")) })
	})
}

func testClaims(t *testing.T, r *IDRanges) {
	if _, err := r.Allocate(t.Context(), 1); !errors.Is(err, ErrNoTag) {
		t.Errorf("Allocate = %v without a row, want ErrNoTag", err)
	}
	for range 2 {
		if err := r.Create(t.Context(), 7, "a test"); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		first, last int64
		want        bool
		floor       int64
	}{{1, 10, true, 10}, {1, 10, false, 10}, {5, 20, false, 10}, {10, 20, false, 10}, {31, 40, true, 40}, {11, 30, false, 40}} {
		ok, err := r.Claim(t.Context(), c.first, c.last)
		floor, least, floorErr := r.Floor(t.Context())
		if err != nil || floorErr != nil || ok != c.want || floor != c.floor || least != 7 {
			t.Errorf("Claim(%d, %d) = %v, %v, floor %d, %v", c.first, c.last, ok, err, floor, floorErr)
		}
	}
}
