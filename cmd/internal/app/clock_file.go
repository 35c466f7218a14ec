//go:build seckill_clock

package app

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// init replaces the clock of order ids for drills. SECKILL_CLOCK_FILE names a file that says how wrong the clock is;
// without the file the clock is right.
func init() {
	c := &fileClock{start: time.Now(), path: os.Getenv("SECKILL_CLOCK_FILE")}
	idClock = c.now
}

// fileClock is wrong by what the file says: "-2s" or "1h"; or "-3ms/50ms", which goes back by 3 ms every 50 ms and catches
// up in between, like a clock that is corrected all the time.
type fileClock struct {
	start time.Time
	path  string

	mu     sync.Mutex
	readAt time.Duration // since start
	read   bool
	by     time.Duration
	every  time.Duration
}

const readEvery = 20 * time.Millisecond

// now is an idgen.Clock.
func (c *fileClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	elapsed := time.Since(c.start)
	if !c.read || elapsed-c.readAt >= readEvery {
		c.read, c.readAt = true, elapsed
		c.readFile()
	}
	by := c.by
	if c.every > 0 {
		by -= by * (elapsed % c.every) / c.every
	}
	return time.Now().Add(by)
}

func (c *fileClock) readFile() {
	text, err := os.ReadFile(c.path)
	if err != nil {
		c.by, c.every = 0, 0
		return
	}
	by, every, _ := strings.Cut(strings.TrimSpace(string(text)), "/")
	if c.by, err = time.ParseDuration(by); err == nil && every != "" {
		c.every, err = time.ParseDuration(every)
	} else {
		c.every = 0
	}
	if err != nil {
		panic(fmt.Sprintf("%s: %v", c.path, err)) // a drill with another fault than it says proves nothing
	}
}
