package board

import (
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"seckill/service"
	"seckill/service/idgen"
	"seckill/service/lock"
	"seckill/service/outbox"
)

// Meter takes what the parts of the shop report: it is their observer. It exists before they do. An order costs it a few
// atomic additions, whether or not anybody watches.
type Meter struct {
	began    time.Time
	counts   [counters]atomic.Int64
	accepted histogram
	refused  histogram
	waiting  atomic.Int64
	line     timeline
	sales    sales

	turning sync.Mutex // so that the line ends with what is so

	locksOpen, relayPaused, idsFailing atomic.Bool
}

var (
	_ service.Observer = (*Meter)(nil)
	_ outbox.Observer  = (*Meter)(nil)
)

// NewMeter begins to count.
func NewMeter() *Meter {
	now := time.Now()
	return &Meter{began: now, line: timeline{began: now}}
}

func (m *Meter) count(f figure, n int) { m.counts[f].Add(int64(n)) }

func (m *Meter) event(kind Kind, what string) { m.line.add(time.Now(), kind, what, 0) }

func (m *Meter) repeated(kind Kind, what string) { m.line.repeat(time.Now(), kind, what) }

// turn takes note of a state and puts its change on the line.
func (m *Meter) turn(state *atomic.Bool, now bool, begins, ends Kind) {
	if state.Load() == now {
		return
	}
	m.turning.Lock()
	defer m.turning.Unlock()
	if state.Swap(now) == now {
		return
	}
	kind := ends
	if now {
		kind = begins
	}
	m.event(kind, "")
}

// Answered implements service.Observer.
func (m *Meter) Answered(code service.Code, took time.Duration) {
	f := answerFigure(code)
	m.counts[f].Add(1)
	if f <= replayed {
		m.accepted.add(took)
	} else {
		m.refused.add(took)
	}
}

// Committed implements service.Observer.
func (m *Meter) Committed(orders int, _ time.Duration) {
	m.count(commits, 1)
	m.count(committed, orders)
}

// Waiting implements service.Observer.
func (m *Meter) Waiting(orders int) { m.waiting.Store(int64(orders)) }

// Expired implements service.Observer.
func (m *Meter) Expired(orders int) { m.count(expired, orders) }

// Locked is what lock.Observe reports to.
func (m *Meter) Locked(outcome lock.Outcome, _ time.Duration) {
	f := lockFailed
	switch outcome {
	case lock.Granted:
		f = lockGranted
	case lock.Held:
		f = lockHeld
	case lock.Bypassed:
		f = lockBypassed
	case lock.Lost:
		f = lockLost
	}
	m.counts[f].Add(1)
}

// LockBreaker takes note that the lock's servers are left alone, or asked again.
func (m *Meter) LockBreaker(open bool) { m.turn(&m.locksOpen, open, LockOpened, LockClosed) }

// IDs is an idgen.Observer.
func (m *Meter) IDs(e idgen.Event) {
	switch e.Kind {
	case idgen.LeaseRenewed, idgen.SegmentLoaded:
		m.turn(&m.idsFailing, false, IDsAway, IDsBack)
	case idgen.LeaseFailed, idgen.SegmentFailed:
		m.turn(&m.idsFailing, true, IDsAway, IDsBack)
	case idgen.LeaseAcquired:
		m.event(LeaseAcquired, strconv.Itoa(e.Worker))
	case idgen.LeaseLost:
		m.event(LeaseLost, "")
	case idgen.WorkerSwitched:
		m.repeated(WorkerSwitched, strconv.Itoa(e.Worker))
	case idgen.ClockWait, idgen.ClockAhead:
		m.repeated(ClockBack, e.Step.String())
	}
}

// Claimed implements outbox.Observer.
func (m *Meter) Claimed(int, time.Duration) {}

// Published implements outbox.Observer.
func (m *Meter) Published(o outbox.Outcome, _ time.Duration) {
	m.count(sent, o.Sent)
	m.count(unsent, o.Retry+o.Unavailable)
}

// Sent implements outbox.Observer.
func (m *Meter) Sent(outbox.Event, time.Duration) {}

// GaveUp implements outbox.Observer.
func (m *Meter) GaveUp(e outbox.Event, _ error) {
	m.count(givenUp, 1)
	m.repeated(EventGivenUp, e.Type)
}

// Paused implements outbox.Observer.
func (m *Meter) Paused(d time.Duration) { m.turn(&m.relayPaused, d > 0, RelayPaused, RelayResumed) }

// Failed implements outbox.Observer. The board looks at the database itself.
func (m *Meter) Failed(error) {}

// Checked implements outbox.Observer.
func (m *Meter) Checked(outbox.Health) {}

// answers is how many requests to place an order were answered.
func (m *Meter) answers() (n int64) {
	for f := range commits { // the counters before it are those of answers
		n += m.counts[f].Load()
	}
	return n
}

// read adds what the meter knows to the figures.
func (m *Meter) read(v *values) {
	for f := range counters {
		v[f] = m.counts[f].Load()
	}
	v[queue] = m.waiting.Load()
	v[lockOpen] = flag(m.locksOpen.Load())
	v[brokerAway] = flag(m.relayPaused.Load())
	v[idsAway] = flag(m.idsFailing.Load())
}

func flag(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
