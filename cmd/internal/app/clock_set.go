//go:build seckill_clock

package app

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"seckill/service/idgen"
)

// idClock is a clock that is set by a file, for drills: nothing but the ids of orders reads it. SECKILL_CLOCK_FILE names
// the file; as long as there is none, the clock is right.
func idClock() idgen.Clock {
	return &setClock{Clock: idgen.SystemClock(), path: os.Getenv("SECKILL_CLOCK_FILE")}
}

// setClock is wrong by what the file says: "-2s" or "1h"; or "-3ms/50ms", which goes back by 3 ms every 50 ms and makes
// up for it in between, as a clock that is corrected all the time.
type setClock struct {
	idgen.Clock
	path string

	mu     sync.Mutex
	looked time.Duration // when, on Mono
	once   bool
	by     time.Duration
	every  time.Duration
}

const lookEvery = 20 * time.Millisecond

// Wall implements idgen.Clock.
func (c *setClock) Wall() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	mono := c.Mono()
	if !c.once || mono-c.looked >= lookEvery {
		c.once, c.looked = true, mono
		c.look()
	}
	by := c.by
	if c.every > 0 {
		by -= by * (mono % c.every) / c.every
	}
	return c.Clock.Wall().Add(by)
}

func (c *setClock) look() {
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
		panic(fmt.Sprintf("%s: %v", c.path, err)) // a drill that is not played as it says proves nothing
	}
}
