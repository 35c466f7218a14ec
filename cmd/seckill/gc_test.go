package main

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

func TestGrowthOfTheHeap(t *testing.T) {
	for live, want := range map[uint64]int{0: 400, 10 << 20: 400, 16 << 20: 400, 20 << 20: 300, 32 << 20: 200, 64 << 20: 100, 1 << 40: 100} {
		if got := growthFor(live); got != want {
			t.Errorf("%d MiB alive: %d %%, want %d", live>>20, got, want)
		}
	}
}

// TestGCFollowsTheHeap: a large heap is collected as often as by default, and a small one less often again after it.
func TestGCFollowsTheHeap(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	stop := relaxGC()
	defer stop()
	percent := func(want int) {
		t.Helper()
		for range 1000 {
			runtime.GC()
			now := debug.SetGCPercent(100)
			debug.SetGCPercent(now)
			if now == want {
				return
			}
			time.Sleep(time.Millisecond) // cleanups run on a goroutine of the runtime's
		}
		t.Fatalf("the growth never became %d %%", want)
	}
	percent(400)
	large := make([]byte, 128<<20)
	percent(100)
	runtime.KeepAlive(large)
	large = nil
	percent(400)
}
