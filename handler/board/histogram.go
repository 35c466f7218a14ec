package board

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// A histogram has eight buckets to each power of two, from a microsecond on, so that a percentile is told at most an
// eighth too high. What takes longer than 2^26 µs, over a minute, is in the last bucket.
const (
	octaves = 24
	buckets = octaves * 8
)

type histogram struct{ counts [buckets]atomic.Int64 }

type counted [buckets]int64

func bucketOf(took time.Duration) int {
	us := uint64(max(0, took.Microseconds()))
	if us < 8 {
		return int(us)
	}
	octave := bits.Len64(us) - 3 // us>>(octave-1) is from 8 to 15
	return min((octave-1)*8+int(us>>(octave-1)), buckets-1)
}

// ceilingOf is the largest number of microseconds in a bucket.
func ceilingOf(bucket int) int64 {
	if bucket < 16 {
		return int64(bucket)
	}
	shift := bucket/8 - 1
	return (int64(bucket%8+8)+1)<<shift - 1
}

func (h *histogram) add(took time.Duration) { h.counts[bucketOf(took)].Add(1) }

func (h *histogram) read(into *counted) {
	for i := range into {
		into[i] = h.counts[i].Load()
	}
}

// percentiles writes those of what was counted between two readings, in microseconds; -1 if nothing was. Shares ascend.
func percentiles(before, after *counted, shares []float64, into []int64) {
	all := int64(0)
	for i := range after {
		all += after[i] - before[i]
	}
	for i := range shares {
		into[i] = -1
	}
	seen, bucket := int64(0), -1
	for i, share := range shares {
		for all > 0 && float64(seen) < share*float64(all) {
			bucket++
			seen += after[bucket] - before[bucket]
		}
		if all > 0 {
			into[i] = ceilingOf(bucket)
		}
	}
}
