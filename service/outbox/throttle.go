package outbox

import (
	"context"
	"sync/atomic"
	"time"
)

// throttle leaves the database to the transactions that append events while there are many of them. The relay writes
// each row twice, so at full speed it would take about as much of the database as they do. While commits come in quick
// succession it rests after each batch; the first commits after a quiet time are relayed at once.
type throttle struct {
	wakeUps atomic.Int64 // wake-ups since measured

	// Used by the relay's goroutine only.
	measured time.Time // start of the current measurement
	busy     bool      // result of the last one
	drained  time.Time // when nothing was due
}

const (
	// busyRate is the number of wake-ups per second that make the shop busy. One group commit takes up to a few hundred
	// orders, so a saturated shop has only some dozen commits per second.
	busyRate   = 10
	busyWindow = 100 * time.Millisecond

	// restFactor is the length of a rest as a multiple of the batch before it: the relay works a tenth of the time.
	restFactor = 9
	// maxLag is how long the relay may fail to drain the store before it rests only as long as it works.
	maxLag = 15 * time.Second
	// longestRest limits the rest after a slow batch: that time was spent waiting, for example for a broker that does not
	// answer, and not on the database.
	longestRest = 2 * time.Second
)

// rest waits after a batch if the shop is busy.
func (t *throttle) rest(ctx context.Context, batch time.Duration) {
	now := time.Now()
	if d := now.Sub(t.measured); d >= busyWindow {
		t.busy = float64(t.wakeUps.Swap(0)) >= busyRate*d.Seconds()
		t.measured = now
	}
	if !t.busy {
		return
	}
	pause := batch * restFactor
	if now.Sub(t.drained) > maxLag {
		pause = batch
	}
	sleep(ctx, min(pause, longestRest))
}
