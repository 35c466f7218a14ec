// Package idgentest holds what every idgen.Generator has to pass, and the clocks and stores to put it to the test with.
package idgentest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"seckill/service/idgen"
)

// New makes a generator that shares its store with all others that the same test made. It fails the test if it can't.
type New func(t *testing.T) idgen.Generator

// Run checks the contract of idgen.Generator. It calls newStore once a subtest, for a store of its own.
func Run(t *testing.T, newStore func(t *testing.T) New) {
	for name, check := range map[string]func(*testing.T, New){
		"ascends":   ascends,
		"fills":     fills,
		"racing":    racing,
		"successor": successor,
		"closed":    closed,
		"at-hand":   atHand,
	} {
		t.Run(name, func(t *testing.T) { check(t, newStore(t)) })
	}
}

// closing closes g when the test ends, and expects that to work.
func closing(t *testing.T, g idgen.Generator) idgen.Generator {
	t.Cleanup(func() {
		if err := g.Close(context.Background()); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return g
}

func ascends(t *testing.T, newGen New) {
	g := closing(t, newGen(t))
	last := idgen.ID(0)
	for range 20_000 {
		id, err := g.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if id <= last {
			t.Fatalf("%d follows %d", id, last)
		}
		last = id
	}
}

func fills(t *testing.T, newGen New) {
	g := closing(t, newGen(t))
	last := idgen.ID(0)
	for _, n := range []int{0, 1, 2, 3, 255, 4096, 4097, 70_000, 1} {
		dst := make([]idgen.ID, n)
		if err := g.NextN(t.Context(), dst); err != nil {
			t.Fatal(err)
		}
		for _, id := range dst {
			if id <= last {
				t.Fatalf("NextN(%d): %d follows %d", n, id, last)
			}
			last = id
		}
	}
}

// racing lets two generators on one store hand out ids to several goroutines each, one by one and in bulk.
func racing(t *testing.T, newGen New) {
	const each, bulk = 20_000, 37
	gens := []idgen.Generator{closing(t, newGen(t)), closing(t, newGen(t))}
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		seen Set
	)
	for i := range 8 {
		wg.Go(func() {
			mine := make([]idgen.ID, 0, each)
			for len(mine) < each {
				got, err := draw(t.Context(), gens[i%2], len(mine)%3*bulk)
				if err != nil {
					t.Error(err)
					return
				}
				mine = append(mine, got...)
			}
			if !slices.IsSorted(mine) {
				t.Error("the ids of one goroutine do not ascend")
			}
			mu.Lock()
			defer mu.Unlock()
			seen.Add(t, mine...)
		})
	}
	wg.Wait()
	if seen.Len() < 8*each {
		t.Errorf("%d ids, want at least %d", seen.Len(), 8*each)
	}
}

// draw takes n ids at once, or one with Next when n is zero.
func draw(ctx context.Context, g idgen.Generator, n int) ([]idgen.ID, error) {
	if n == 0 {
		id, err := g.Next(ctx)
		return []idgen.ID{id}, err
	}
	dst := make([]idgen.ID, n)
	return dst, g.NextN(ctx, dst)
}

// successor closes generators and goes on with new ones, which must not repeat what the earlier ones handed out.
func successor(t *testing.T, newGen New) {
	var seen Set
	for range 20 {
		g := newGen(t)
		ids := make([]idgen.ID, 5000)
		if err := g.NextN(t.Context(), ids); err != nil {
			t.Fatal(err)
		}
		seen.Add(t, ids...)
		if err := g.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func closed(t *testing.T, newGen New) {
	g := newGen(t)
	if _, err := g.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if err := g.Close(t.Context()); err != nil {
				t.Errorf("Close: %v", err)
			}
		})
	}
	wg.Wait()
	if _, err := g.Next(t.Context()); !errors.Is(err, idgen.ErrClosed) {
		t.Errorf("Next after Close = %v, want ErrClosed", err)
	}
	if err := g.NextN(t.Context(), make([]idgen.ID, 3)); !errors.Is(err, idgen.ErrClosed) {
		t.Errorf("NextN after Close = %v, want ErrClosed", err)
	}
}

// atHand: a context matters only to a call that waits.
func atHand(t *testing.T, newGen New) {
	g := closing(t, newGen(t))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := g.Next(ctx); err != nil {
		t.Errorf("Next: %v", err)
	}
}
