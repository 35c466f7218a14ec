package lock

import (
	"sync"
	"sync/atomic"
	"time"
)

// breaker opens after limit failures in a row, and lets one probe through after each pause.
type breaker struct {
	limit   int
	pause   time.Duration
	probe   time.Duration // a probe that has not returned by then no longer keeps others from probing
	changed func(open bool, cause error)

	troubled atomic.Bool // failures > 0: while it is false, nobody takes mu
	mu       sync.Mutex
	failures int
	retry    time.Time // while open: the earliest time of the next probe
}

// allow reports whether the caller may ask the backend. While the breaker is open, that is one caller a pause.
func (b *breaker) allow() bool {
	if !b.troubled.Load() {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < b.limit {
		return true
	}
	now := time.Now()
	if now.Before(b.retry) {
		return false
	}
	b.retry = now.Add(max(b.pause, b.probe))
	return true
}

func (b *breaker) failed(cause error) {
	b.mu.Lock()
	b.troubled.Store(true)
	b.failures++
	opened := b.failures == b.limit
	if b.failures >= b.limit {
		b.retry = time.Now().Add(b.pause)
	}
	b.mu.Unlock()
	if opened {
		b.changed(true, cause)
	}
}

func (b *breaker) answered() {
	if !b.troubled.Load() {
		return
	}
	b.mu.Lock()
	closed := b.failures >= b.limit
	b.failures = 0
	b.troubled.Store(false)
	b.mu.Unlock()
	if closed {
		b.changed(false, nil)
	}
}
