package redisids_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/repository"
	"seckill/repository/ids/redisids"
	"seckill/repository/repotest/dbtest"
	"seckill/repository/repotest/redistest"
	"seckill/repository/repotest/wait"
	"seckill/service/idgen"
	"seckill/service/idgen/idgentest"
)

func database(t *testing.T, target dbtest.Database) *repository.DB {
	t.Helper()
	var db *repository.DB
	var err error
	if log := slog.New(slog.DiscardHandler); target.Engine == dbtest.SQLite {
		db, err = repository.OpenSQLite(target.DSN, log)
	} else {
		db, err = repository.OpenMySQL(t.Context(), target.DSN, repository.PoolOptions{}, log)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.Migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return db
}

// The real floor and a real Redis that is killed without having saved anything.
func TestStore_RedisThatForgets(t *testing.T) {
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		db, server := database(t, target), redistest.Start(t)
		ranges := db.IDRanges(repository.OrderIDs)
		store := redisids.New(server.Client(), key, ranges)
		g, err := idgen.NewSegment(t.Context(), store, idgen.WithLoadAt(1), idgen.WithStep(1000, 1000))
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close(context.Background())
		var ids idgentest.Set
		take := func(n int) error {
			dst := make([]idgen.ID, n)
			err := g.NextN(t.Context(), dst)
			if err == nil {
				ids.Add(t, dst...)
			}
			return err
		}
		if err := take(1000); err != nil {
			t.Fatal(err)
		}
		server.Kill()
		server.Restart()
		if err := take(1); !errors.Is(err, idgen.ErrCounterLost) {
			t.Fatalf("Redis came back empty: %v, want ErrCounterLost", err)
		}
		if _, err := store.Restore(t.Context()); err != nil {
			t.Fatal(err)
		}
		wait.Until(t, "the generator asks Redis again", func() bool {
			err = take(5000)
			return !errors.Is(err, idgen.ErrCounterLost) // it repeats a refusal for a while
		})
		if err != nil {
			t.Error(err)
		}
		// Whoever goes over to Leaf's own ranges goes on above.
		if got, err := ranges.Allocate(t.Context(), 1); err != nil || got.First <= 6000 {
			t.Errorf("Allocate = %+v, %v, want it above what Redis gave", got, err)
		}
		if _, err := store.Allocate(t.Context(), 1); !errors.Is(err, idgen.ErrCounterLost) {
			t.Errorf("Redis does not know of Leaf's ranges, and got %v, want ErrCounterLost", err)
		}
	})
}

func TestStore_TimedOutIncrementIsIgnored(t *testing.T) {
	server, f := redistest.Start(t), &floor{least: 1}
	client := redis.NewClient(&redis.Options{Addr: server.Addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	defer client.Close()
	g, err := idgen.NewSegment(t.Context(), redisids.New(client, key, f),
		idgen.WithLoadAt(1), idgen.WithStep(10, 10), idgen.WithLoadTimeout(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close(context.Background())
	ids := make([]idgen.ID, 10)
	if err := g.NextN(t.Context(), ids); err != nil {
		t.Fatal(err)
	}
	server.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 400*time.Millisecond)
	defer cancel()
	if id, err := g.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Next = %d, %v while Redis is frozen", id, err)
	}
	if n := g.Stats().Failures; n == 0 {
		t.Error("no request timed out")
	}
	server.Resume() // and carries out what it was sent, for nobody
	id, err := g.Next(t.Context())
	if err != nil || id <= 20 {
		t.Errorf("Next = %d, %v, want an id above what the frozen Redis was asked for", id, err)
	}
}
