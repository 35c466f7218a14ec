package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// Bounds of how much a heap may grow, in percent of what lives, before it is collected. Go's own is 100.
const (
	leastGrowth = 100
	mostGrowth  = 400
	// heapRoom is garbage that may pile up before the bounds above: a shop at full rate has some ten megabytes that
	// live, and a collection costs the same however much is dead.
	heapRoom = 64 << 20
)

// relaxGC lets a small heap pile up more garbage than Go does by default, which saves a tenth of a busy shop's time,
// and a large one no more than by default, so that a full queue stays within its memory. After each collection the
// next is set by what lives then. Whoever sets GOGC has decided already. The function that it returns ends it.
func relaxGC() (stop func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	var (
		ended   atomic.Bool
		current = leastGrowth // as Go starts
		watch   func()
	)
	watch = func() {
		if ended.Load() {
			return
		}
		if growth := growthFor(liveHeap()); growth != current {
			debug.SetGCPercent(growth)
			current = growth
		}
		// What nobody refers to is cleaned up after the next collection, and so on.
		runtime.AddCleanup(new([16]byte), func(watch func()) { watch() }, watch)
	}
	watch()
	return func() { ended.Store(true) }
}

// growthFor returns a growth in steps, because each change stops the world for a moment.
func growthFor(live uint64) int {
	growth := heapRoom * 100 / max(live, 1<<20)
	return max(leastGrowth, min(mostGrowth, int(growth/50*50)))
}

// liveHeap is what the last collection found alive.
func liveHeap() uint64 { return runtimeMetric("/gc/heap/live:bytes") }

func runtimeMetric(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
