package repository

import (
	"context"
	"errors"
	"testing"
	"time"

	"seckill/repository/repotest/dbtest"
	"seckill/service/idgen"
	"seckill/service/idgen/idgentest"
)

// The database dies under the generators. What they hold they hand out; then calls fail, within their time and with the
// reason; and once the database is back, they are served again.
func TestIDsWhileTheDatabaseIsAway(t *testing.T) {
	dbtest.EachServer(t, func(t *testing.T, server *dbtest.Server) {
		db := openDB(t, server.Create())
		const lease = 4 * time.Second
		flake, err := idgen.NewSnowflake(t.Context(), db.WorkerLeases(), idgen.WithLease(lease, time.Second))
		if err != nil {
			t.Fatal(err)
		}
		segment, err := idgen.NewSegment(t.Context(), db.IDRanges(OrderIDs), idgen.WithLoadAt(1))
		if err != nil {
			t.Fatal(err)
		}
		var flakes, numbers idgentest.Set
		if err := takeIDs(t, segment, &numbers, 900); err != nil {
			t.Fatal(err)
		}
		server.Kill()
		killed := time.Now()
		if err := takeIDs(t, segment, &numbers, 100); err != nil {
			t.Errorf("ids at hand: %v", err)
		}
		if err := takeIDs(t, segment, &numbers, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("with none left: %v, want the context's end", err)
		}
		for err = nil; err == nil; time.Sleep(time.Millisecond) {
			err = takeIDs(t, flake, &flakes, 1)
		}
		if lasted := time.Since(killed); !errors.Is(err, idgen.ErrLeaseLost) || lasted < lease/2 || lasted > lease {
			t.Errorf("snowflake failed after %s: %v, want ErrLeaseLost before the lease of %s is over", lasted, err, lease)
		}
		server.Restart()
		for _, g := range []struct {
			idgen.Generator
			ids *idgentest.Set
		}{{flake, &flakes}, {segment, &numbers}} {
			deadline := time.Now().Add(30 * time.Second)
			for err = takeIDs(t, g, g.ids, 100); err != nil && time.Now().Before(deadline); err = takeIDs(t, g, g.ids, 100) {
				time.Sleep(50 * time.Millisecond)
			}
			if err != nil {
				t.Errorf("%T, with the database back: %v", g.Generator, err)
			}
			if err := g.Close(context.Background()); err != nil {
				t.Errorf("%T: %v", g.Generator, err)
			}
		}
	})
}

func takeIDs(t *testing.T, g idgen.Generator, ids *idgentest.Set, n int) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	dst := make([]idgen.ID, n)
	err := g.NextN(ctx, dst)
	if err == nil {
		ids.Add(t, dst...)
	}
	return err
}
