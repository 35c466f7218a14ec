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
	before := debug.SetGCPercent(leastGrowth)
	defer debug.SetGCPercent(before)
	stop := relaxGC()
	defer stop()
	becomes := func(what string, is func(percent uint64) bool) {
		t.Helper()
		for range 5000 {
			runtime.GC()
			if is(gcPercent()) {
				return
			}
			time.Sleep(time.Millisecond) // cleanups run on a goroutine of the runtime's
		}
		t.Fatalf("the growth is %d %%, want %s", gcPercent(), what)
	}
	more := func(percent uint64) bool { return percent > leastGrowth }
	becomes("more than Go's own", more)
	large := make([]byte, 2*heapRoom)
	becomes("Go's own", func(percent uint64) bool { return percent == leastGrowth })
	runtime.KeepAlive(large)
	large = nil
	becomes("more again", more)
}

func gcPercent() uint64 { return runtimeMetric("/gc/gogc:percent") }
