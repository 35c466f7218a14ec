package idgen

import (
	"math"
	"time"
)

// window is a stretch of ticks that calls take from without a lock: those of one worker, until the clock's next
// millisecond or the end of the lease, whichever is first.
//
// A window ends in one of two ways. Normally each call looks at the clock. Where calls are many, that look is most of
// what an id costs, so a timer ends the window instead; being late, it makes ids that are as much older than the clock,
// and none that is not unique, since the ticks are below the stored ceiling.
type window struct {
	counter
	until    time.Duration // on Mono
	timed    bool          // the timer sees to until
	stop     func() bool   // stops the timer
	machine  int64         // in its place in the id
	machBits int
	seqMask  int64
}

// Busy windows give at least busyIDs ids. Those that a timer ends hold no more than timedTicks, so that the clock is
// looked at often enough even where goroutines in a tight loop keep the timer from running.
const (
	busyIDs    = 256
	timedTicks = 16384
)

// deadWindow returns a window that nobody takes from.
func deadWindow() *window { return &window{until: math.MinInt64} }

func (w *window) valid(c Clock) bool { return w.timed || c.Mono() < w.until }

func (w *window) compose(tick int64) ID {
	sequence := tick & w.seqMask
	return ID((tick-sequence)<<w.machBits | w.machine | sequence)
}

func (w *window) takeInto(dst []ID) int {
	filled := 0
	for filled < len(dst) {
		tick, got := w.take(int64(len(dst) - filled))
		if got == 0 {
			break
		}
		w.composeInto(dst[filled:filled+int(got)], tick)
		filled += int(got)
	}
	return filled
}

// composeInto fills dst with the ids of adjacent ticks: within a millisecond, each is one more than the one before.
func (w *window) composeInto(dst []ID, tick int64) {
	for len(dst) > 0 {
		left := w.seqMask + 1 - tick&w.seqMask
		part := dst[:min(int64(len(dst)), left)]
		id := w.compose(tick)
		for i := range part {
			part[i] = id + ID(i)
		}
		tick += int64(len(part))
		dst = dst[len(part):]
	}
}

// install puts a window over the reach in place. s.mu is held.
func (s *Snowflake) install(r reach, machine int, mono, until time.Duration) {
	w := &window{
		until: until, timed: s.busy, machine: int64(machine) << s.pace.seqBits,
		machBits: s.layout.machineBits(), seqMask: 1<<s.pace.seqBits - 1,
	}
	w.base, w.size = r.first, r.limit-r.first
	if w.timed {
		w.size = min(w.size, timedTicks)
		w.stop = s.clock.AfterFunc(until-mono, func() { s.expire(w) })
	}
	s.win.Store(w)
}

// expire ends a timed window that is still in place.
func (s *Snowflake) expire(w *window) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.win.Load() == w {
		s.retireWindow()
	}
}

// retireWindow ends the present window and books what was taken from it. s.mu is held.
func (s *Snowflake) retireWindow() {
	w := s.win.Load()
	if w.size == 0 {
		return
	}
	if w.timed {
		w.stop()
	}
	end := w.cut()
	st := &s.streams[s.active]
	st.last = max(st.last, end-1)
	s.busy = end-w.base >= busyIDs
	s.win.Store(deadWindow())
}
