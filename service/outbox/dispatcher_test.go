package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"seckill/service/outbox"
)

func TestDispatcher_KeepsOrderPerKeyAndSkipsFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var took []string
		start := time.Now()
		dispatcher := outbox.StartDispatcher(t.Context(), outbox.DispatcherConfig{Workers: 4}, func(_ context.Context, e outbox.Event) error {
			mu.Lock()
			defer mu.Unlock()
			if e.Key == 7 && time.Since(start) < time.Minute {
				return errors.New("not now")
			}
			took = append(took, fmt.Sprintf("%d/%d", e.Key, e.Version))
			return nil
		})
		defer dispatcher.Stop()
		var settled sync.Map
		for version := 1; version <= 3; version++ {
			for key := int64(1); key <= 20; key++ {
				if err := dispatcher.Deliver(t.Context(), outbox.Event{Key: key, Version: version}, func(err error) {
					settled.Store(fmt.Sprintf("%d/%d", key, version), err)
				}); err != nil {
					t.Fatal(err)
				}
			}
		}
		synctest.Wait()
		mu.Lock()
		if len(took) != 3*19 {
			t.Errorf("%d events were handled beside those that fail, want %d", len(took), 3*19)
		}
		for key := 1; key <= 20; key++ {
			if key == 7 {
				continue
			}
			at := func(version int) int { return slices.Index(took, fmt.Sprintf("%d/%d", key, version)) }
			if at(1) > at(2) || at(2) > at(3) {
				t.Errorf("key %d: handled at %d, %d, %d", key, at(1), at(2), at(3))
			}
		}
		mu.Unlock()
		time.Sleep(time.Minute + 5*time.Second) // the longest pause
		synctest.Wait()
		for version := 1; version <= 3; version++ {
			if err, ok := settled.Load(fmt.Sprintf("7/%d", version)); !ok || err != nil {
				t.Errorf("done was called for the failed event: %v, with %v; want with nil", ok, err)
			}
		}
	})
}

func TestDispatcher_CallsDoneOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failure := errors.New("no")
		dispatcher := outbox.StartDispatcher(t.Context(), outbox.DispatcherConfig{Workers: 2, Queue: 40, MaxTries: 3}, func(ctx context.Context, e outbox.Event) error {
			switch e.Type {
			case "poison":
				return outbox.ErrPoison
			case "fails":
				return failure
			case "waits":
				<-ctx.Done()
				return context.Cause(ctx)
			}
			return nil
		})
		got := map[string][]error{}
		var mu sync.Mutex
		deliver := func(kind string, key int64) {
			err := dispatcher.Deliver(t.Context(), outbox.Event{Type: kind, Key: key}, func(err error) {
				mu.Lock()
				defer mu.Unlock()
				got[kind] = append(got[kind], err)
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		deliver("poison", 1)
		deliver("fails", 1)
		time.Sleep(time.Second)
		for key := range int64(16) {
			deliver("waits", key) // both workers
		}
		for key := range int64(16) {
			deliver("behind", key)
		}
		synctest.Wait()
		dispatcher.Stop()
		for kind, want := range map[string]error{"poison": outbox.ErrPoison, "fails": failure, "waits": outbox.ErrUnavailable, "behind": outbox.ErrUnavailable} {
			n := 1
			if kind == "waits" || kind == "behind" {
				n = 16
			}
			if len(got[kind]) != n || !errors.Is(got[kind][0], want) {
				t.Errorf("%s: done was called with %v, want %d times %v", kind, got[kind], n, want)
			}
		}
		if err := dispatcher.Deliver(t.Context(), outbox.Event{}, func(error) { t.Error("done was called") }); !errors.Is(err, outbox.ErrUnavailable) {
			t.Errorf("delivered to a stopped dispatcher: %v", err)
		}
	})
}

func TestDispatcher_FullQueueBlocksDeliver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		dispatcher := outbox.StartDispatcher(t.Context(), outbox.DispatcherConfig{Workers: 1, Queue: 2}, func(context.Context, outbox.Event) error {
			<-release
			return nil
		})
		var settled atomic.Int32
		count := func(error) { settled.Add(1) }
		for range 3 { // one with the worker, two in the queue
			if err := dispatcher.Deliver(t.Context(), outbox.Event{}, count); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := dispatcher.Deliver(ctx, outbox.Event{}, count); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a full queue: %v, want the deadline", err)
		}
		close(release)
		synctest.Wait()
		dispatcher.Stop()
		if settled.Load() != 3 {
			t.Errorf("done was called %d times, want 3", settled.Load())
		}
	})
}
