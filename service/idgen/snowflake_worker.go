package idgen

import (
	"math"
	"time"
)

// A tick is a millisecond of the layout and a sequence number in it, as one number: ms << SequenceBits | sequence. A
// worker's ticks are handed out in ascending order, so an id can repeat only if a tick does.

// worker is what a generator knows about one worker of its pair. Its last tick never goes down, whichever worker is used.
type worker struct {
	number     int   // counted over all data centres
	last       int64 // the highest tick used, by this generator or by an earlier holder; -1 for none
	ceiling    int64 // the millisecond, stored in the lease, that ticks must stay below
	recovering bool  // the worker is ahead because the clock went back, and not because of demand
}

// milli returns the millisecond of a tick.
func (s *Snowflake) milli(tick int64) int64 { return tick >> s.layout.SequenceBits }

// tickRange is the ticks that a worker may use at one moment: from first up to, but not including, limit. If it is empty,
// wait is how long the clock needs until there are ticks; zero means that the ceiling must be raised first.
type tickRange struct {
	first, limit int64
	ahead        int64 // milliseconds that first is ahead of the clock
	wait         time.Duration
}

// usableTicks returns the ticks that w may use when the clock shows now.
func (s *Snowflake) usableTicks(w *worker, now int64) tickRange {
	if w.recovering && s.milli(w.last) <= now {
		w.recovering = false
	}
	bits, maxMS, reserve := s.layout.SequenceBits, s.layout.maxMillis(), s.reserve.Milliseconds()
	// While the store does not answer, the clock approaches the ceiling. Ids follow the clock only until a third of the
	// reserve is left. Those milliseconds, with all their ticks, last until the store answers or the lease ends.
	follow := min(now, w.ceiling-reserve/3)
	first := max(w.last+1, follow<<bits, 0)
	ahead := first>>bits - now
	allowed := s.burst.Milliseconds()
	if w.recovering {
		allowed = s.maxAhead.Milliseconds()
	}
	if ahead > allowed {
		return tickRange{first: first, limit: first, ahead: ahead, wait: millis(min(ahead-allowed, math.MaxInt32))}
	}
	limit := min(now+allowed+1, w.ceiling, maxMS+1) << bits
	return tickRange{first: first, limit: max(first, limit), ahead: ahead}
}

// window is a range of ticks that calls take from without a lock: those of one worker, until the clock's next millisecond
// or the end of the lease.
type window struct {
	counter
	until       time.Duration // on mono
	worker      int64         // shifted to its place in the id
	machineBits int           // of data centre and worker
	seqMask     int64
}

// noWindow is never open.
var noWindow = &window{until: math.MinInt64}

func (s *Snowflake) isOpen(w *window) bool { return s.mono() < w.until }

// id returns the id of a tick.
func (w *window) id(tick int64) ID {
	sequence := tick & w.seqMask
	return ID((tick-sequence)<<w.machineBits | w.worker | sequence)
}

// takeInto fills dst as far as the window has ticks, and returns how many it took.
func (w *window) takeInto(dst []ID) int {
	filled := 0
	for filled < len(dst) {
		tick, got := w.take(int64(len(dst) - filled))
		if got == 0 {
			break
		}
		w.fill(dst[filled:filled+int(got)], tick)
		filled += int(got)
	}
	return filled
}

// fill fills dst with the ids of adjacent ticks. Within a millisecond, each id is one more than the one before.
func (w *window) fill(dst []ID, tick int64) {
	for len(dst) > 0 {
		left := w.seqMask + 1 - tick&w.seqMask // ticks of this millisecond
		part := dst[:min(int64(len(dst)), left)]
		id := w.id(tick)
		for i := range part {
			part[i] = id + ID(i)
		}
		tick += int64(len(part))
		dst = dst[len(part):]
	}
}

// install makes a window over ticks the one that calls take from. s.mu is locked.
func (s *Snowflake) install(ticks tickRange, worker int, until time.Duration) {
	w := &window{
		until: until, worker: int64(worker) << s.layout.SequenceBits,
		machineBits: s.layout.machineBits(), seqMask: 1<<s.layout.SequenceBits - 1,
	}
	w.base, w.size = ticks.first, ticks.limit-ticks.first
	s.window.Store(w)
}

// closeWindow ends the present window and records what was taken from it. s.mu is locked.
func (s *Snowflake) closeWindow() {
	w := s.window.Load()
	if w == noWindow {
		return
	}
	active := &s.workers[s.active]
	active.last = max(active.last, w.stop()-1)
	s.window.Store(noWindow)
}

// lastTick returns the highest tick that the active worker has used. s.mu is locked.
func (s *Snowflake) lastTick() int64 {
	last := s.workers[s.active].last
	if w := s.window.Load(); w != noWindow {
		last = max(last, w.base+w.used()-1)
	}
	return last
}
