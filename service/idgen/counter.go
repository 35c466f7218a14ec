package idgen

import (
	"math"
	"sync/atomic"
)

// counter hands out the numbers from base to base+count-1, each once, to any number of goroutines. It is the one thing
// that every generator here comes down to: the numbers are leased elsewhere, and below that ceiling one atomic addition
// is enough. It counts from zero so that taking from an empty one cannot overflow, whatever base is.
type counter struct {
	next atomic.Int64
	_    [56]byte // what follows is only read; keep it off the cache line that everybody writes
	base int64
	size int64
}

// maxTake bounds a single take, so that all goroutines of a process together cannot count next past 63 bits.
const maxTake = 1 << 16

// take returns the first of up to n numbers and how many there are; zero when the counter is used up.
func (c *counter) take(n int64) (first, got int64) {
	n = min(n, maxTake)
	start := c.next.Add(n) - n
	if start >= c.size {
		return 0, 0
	}
	return c.base + start, min(n, c.size-start)
}

// taken returns how many numbers are gone.
func (c *counter) taken() int64 { return min(c.next.Load(), c.size) }

// cut takes what is left away from everybody and returns the first number that nobody has got.
func (c *counter) cut() int64 { return c.base + min(c.next.Swap(math.MaxInt64/2), c.size) }
