package outbox

import (
	"context"
	"sync/atomic"
	"time"
)

// Yield makes way for the transactions that append events. A relay writes each row twice, so at full speed it would take
// about as much of the database as they do; what is sold in a rush can be told a little later. While commits come in
// quick succession, the relay rests between its batches, and so works for a share of the time only. A shop that is not
// busy is not affected: the first commits after a silence are relayed at once.
type Yield struct {
	// Busy is how many wake-ups a second mean that the shop is busy. Default 50; negative: it never is.
	Busy int
	// Rest is how long to rest after a batch, as a multiple of the time that it took, but two seconds at most. Default 9:
	// a tenth of the time is the relay's.
	Rest int
	// Behind is how long the relay may go on without having drained the store. Beyond it, it rests only as long as it
	// works. Default 15 s.
	Behind time.Duration
}

func (y *Yield) setDefaults() {
	if y.Busy == 0 {
		y.Busy = 50
	}
	orDefault(&y.Rest, 9)
	orDefault(&y.Behind, 15*time.Second)
}

// pacer knows how busy the shop is. Only wakes is touched by other goroutines than the relay's.
type pacer struct {
	Yield
	wakes   atomic.Int64
	since   time.Time // wakes are counted from here
	busy    bool
	drained time.Time // when nothing was due
}

// window is how long wake-ups are counted before they are judged.
const window = 100 * time.Millisecond

// longestRest bounds what follows a batch that took very long. That was not work but waiting, such as for a broker that
// does not answer, and the relay is wanted when it is back.
const longestRest = 2 * time.Second

// rest waits after a batch that took so long, if the shop is busy.
func (p *pacer) rest(ctx context.Context, took time.Duration) {
	now := time.Now()
	if d := now.Sub(p.since); d >= window {
		p.busy = p.Busy > 0 && float64(p.wakes.Swap(0)) >= float64(p.Busy)*d.Seconds()
		p.since = now
	}
	if !p.busy {
		return
	}
	pause := took * time.Duration(p.Rest)
	if now.Sub(p.drained) > p.Behind {
		pause = took
	}
	timer := time.NewTimer(min(pause, longestRest))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
