package idgen

import (
	"math"
	"time"
)

// A tick is a millisecond of the layout and a sequence number in it, as one number: ms << SequenceBits | sequence.
// Ticks of a worker are handed out in ascending order, so an id can repeat only if a tick does.

// stream is what a generator knows of one worker of its pair. Its last tick never goes down, whichever worker is in use.
type stream struct {
	machine int   // worker, counted over all data centres
	last    int64 // the highest tick used, by this generator or by an earlier holder of the worker; -1 for none
	ceiling int64 // the millisecond, stored in the lease, that ticks must stay below
	// recovering is set while the stream is ahead because the clock went back, and not because ids are in demand.
	recovering bool
}

// reach says how far a stream may go at one moment: ticks from first up to but not including limit. When there are
// none, wait says how long the clock needs until there are; zero means that the ceiling has to be raised first.
type reach struct {
	first, limit int64
	ahead        int64 // milliseconds that first is ahead of the clock
	wait         time.Duration
}

func (r reach) usable() bool { return r.first < r.limit }

// pace holds the settings that decide about reach, in milliseconds.
type pace struct {
	seqBits  int
	maxMS    int64 // last millisecond of the layout
	burst    int64 // may be ahead of the clock by this much because of demand
	maxAhead int64 // may be ahead of the clock by this much after the clock went back
	reserve  int64 // the ceiling is kept this far ahead of the time used
}

// reach decides how far the stream may go when the clock shows now.
func (st *stream) reach(p pace, now int64) reach {
	if st.recovering && st.last>>p.seqBits <= now {
		st.recovering = false
	}
	// While the store is silent, the clock runs into the ceiling. Following it stops a little before, which leaves whole
	// milliseconds of unused ticks to live on until the store answers or the lease ends.
	follow := min(now, st.ceiling-p.reserve/3)
	first := max(st.last+1, follow<<p.seqBits, 0)
	ahead := first>>p.seqBits - now
	allowed := p.burst
	if st.recovering {
		allowed = p.maxAhead
	}
	if ahead > allowed {
		return reach{first: first, limit: first, ahead: ahead, wait: millis(min(ahead-allowed, math.MaxInt32))}
	}
	limit := min(now+allowed+1, st.ceiling, p.maxMS+1) << p.seqBits
	return reach{first: first, limit: max(first, limit), ahead: ahead}
}

// rolledBack notes that the clock went back to now, by more than one waits for.
func (st *stream) rolledBack(p pace, now int64) {
	if st.last>>p.seqBits > now {
		st.recovering = true
	}
}

// unused returns the millisecond that no id of the stream has reached: the lowest ceiling that is still true.
func (st *stream) unused(p pace) int64 { return st.last>>p.seqBits + 1 }
