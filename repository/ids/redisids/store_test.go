package redisids_test

import (
	"context"
	"errors"
	"math"
	"strconv"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"seckill/repository/ids/redisids"
	"seckill/repository/repotest/redistest"
	"seckill/service/idgen"
	"seckill/service/idgen/idgentest"
)

// floor is a redisids.Floor in memory. The one in the database is tested with it in package repository.
type floor struct {
	mu          sync.Mutex
	high, least int64
	beforeClaim func()
	refusals    int
}

func (f *floor) Floor(ctx context.Context) (int64, int64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.high, f.least, ctx.Err()
}

func (f *floor) Claim(_ context.Context, first, last int64) (bool, error) {
	if f.beforeClaim != nil {
		f.beforeClaim()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.high >= first {
		f.refusals++
		return false, nil
	}
	f.high = last
	return true, nil
}

const key = "seckill:ids:{test}"

func open(t *testing.T) (*redisids.Store, *redis.Client, *floor) {
	client, f := redistest.Start(t).Client(), &floor{least: 1}
	return redisids.New(client, key, f), client, f
}

func TestStore_Ranges(t *testing.T) {
	idgentest.RunRanges(t, func(t *testing.T) func(*testing.T) idgen.RangeStore {
		server, f := redistest.Start(t), &floor{least: 1}
		return func(*testing.T) idgen.RangeStore { return redisids.New(server.Client(), key, f) }
	})
}

func TestStore_Generator(t *testing.T) {
	idgentest.Run(t, func(t *testing.T) idgentest.New {
		server, f := redistest.Start(t), &floor{least: 500}
		return func(t *testing.T) idgen.Generator {
			store := redisids.New(server.Client(), key, f)
			g, err := idgen.NewSegment(t.Context(), store, idgen.WithLoadAt(0.75))
			if err != nil {
				t.Fatal(err)
			}
			return g
		}
	})
}

func TestStore_LostCounterIsRefusedAndRestored(t *testing.T) {
	for name, lose := range map[string]func(context.Context, *redis.Client) error{
		"missing": func(ctx context.Context, c *redis.Client) error { return c.FlushAll(ctx).Err() },
		"behind":  func(ctx context.Context, c *redis.Client) error { return c.Set(ctx, key, 1999, 0).Err() },
		"shorter": func(ctx context.Context, c *redis.Client) error { return c.Set(ctx, key, 999, 0).Err() },
	} {
		t.Run(name, func(t *testing.T) {
			store, client, _ := open(t)
			if got, err := store.Allocate(t.Context(), 2000); err != nil || got.First != 1 {
				t.Fatal(got, err)
			}
			if err := lose(t.Context(), client); err != nil {
				t.Fatal(err)
			}
			before := client.Get(t.Context(), key).Val()
			for range 3 {
				if got, err := store.Allocate(t.Context(), 1000); !errors.Is(err, idgen.ErrCounterLost) {
					t.Fatalf("Allocate = %+v, %v, want ErrCounterLost", got, err)
				}
			}
			if after := client.Get(t.Context(), key).Val(); after != before {
				t.Errorf("a refused counter moved from %q to %q", before, after)
			}
			if at, err := store.Restore(t.Context()); at != 2000 || err != nil {
				t.Errorf("Restore = %d, %v, want the floor", at, err)
			}
			if got, err := store.Allocate(t.Context(), 10); err != nil || got.First != 2001 {
				t.Errorf("Allocate = %+v, %v after Restore", got, err)
			}
			if at, err := store.Restore(t.Context()); at != 2010 || err != nil {
				t.Errorf("Restore = %d, %v, want a sound counter left alone", at, err)
			}
		})
	}
}

// A replica that was behind takes over in the middle: two instances get the same range, and one of them the claim.
func TestStore_CounterLostBetweenIncrementAndClaim(t *testing.T) {
	store, client, f := open(t)
	if _, err := store.Allocate(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	var rival idgen.Range
	f.beforeClaim = func() {
		f.beforeClaim = nil
		if err := client.Set(t.Context(), key, 100, 0).Err(); err != nil { // what was counted meanwhile is gone
			t.Error(err)
		}
		var err error
		if rival, err = store.Allocate(t.Context(), 100); err != nil {
			t.Error(err)
		}
	}
	got, err := store.Allocate(t.Context(), 100)
	if err != nil {
		t.Fatal(err)
	}
	if f.refusals != 1 {
		t.Errorf("%d claims were refused, want 1: the fault did not take effect", f.refusals)
	}
	if rival.First != 101 || got.First != 201 {
		t.Errorf("ranges %+v and %+v, want them apart", rival, got)
	}
}

func TestStore_NumbersBeyondADouble(t *testing.T) {
	store, client, f := open(t)
	const high = 1<<53 + 1 // as a double, it is 2^53
	f.high = high
	for _, c := range []struct {
		at   int64
		lost bool
	}{{high - 1, true}, {high, false}} {
		if err := client.Set(t.Context(), key, c.at, 0).Err(); err != nil {
			t.Fatal(err)
		}
		got, err := store.Allocate(t.Context(), 1)
		if c.lost != errors.Is(err, idgen.ErrCounterLost) || !c.lost && got.First != high+1 {
			t.Errorf("Allocate = %+v, %v with the counter at %d and the floor at %d", got, err, c.at, int64(high))
		}
	}
}

func TestStore_EndOfTheNumbers(t *testing.T) {
	store, client, f := open(t)
	f.high = math.MaxInt64 - 10
	if err := client.Set(t.Context(), key, strconv.Itoa(math.MaxInt64-10), 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got, err := store.Allocate(t.Context(), 11); !errors.Is(err, idgen.ErrExhausted) {
		t.Errorf("Allocate(11) = %+v, %v, want ErrExhausted", got, err)
	}
	if got, err := store.Allocate(t.Context(), 10); err != nil || got.First+9 != math.MaxInt64 {
		t.Errorf("Allocate(10) = %+v, %v, want the last ones", got, err)
	}
}
