package outbox

import (
	"context"
	"time"
)

// Store keeps the rows of the outbox. Every time in it is the database's own; callers pass durations. Any number of
// processes may use one store at once, and an event is in the hands of one of them at a time.
type Store interface {
	// Claim takes up to c.Limit due events for c.Lease, earliest first. The batch is empty if nothing is due, or if
	// others were faster; Contended tells the two apart. Events that are not settled within the lease are due again.
	Claim(ctx context.Context, c Claim) (Batch, error)

	// Sent marks events that the broker has confirmed. It does so whoever holds them by now: what was sent was sent.
	Sent(ctx context.Context, ids []int64) error

	// Failed counts an attempt for each event, and makes it due again after its delay, or gives it up. It leaves alone
	// what is no longer held under the token.
	Failed(ctx context.Context, token string, failures []Failure) error

	// Release gives events back without counting an attempt; they are due after the delay. It leaves alone what is no
	// longer held under the token.
	Release(ctx context.Context, token string, ids []int64, delay time.Duration) error

	// Backlog counts what was not sent.
	Backlog(ctx context.Context) (Backlog, error)
}

// Claim says which events to take.
type Claim struct {
	Limit int
	Lease time.Duration
	// Overdue narrows the claim to events that have been due for this long at least, or were tried MinAttempts times.
	// Zero takes everything that is due.
	Overdue     time.Duration
	MinAttempts int
}

// Batch is a number of claimed events.
type Batch struct {
	Token     string  // names the claim: a new one each time
	Events    []Event // in the order in which they became due
	Attempts  []int   // of each event, those that failed before
	Contended bool    // others claimed at the same moment and took events away
}

// Failure is what becomes of an event whose attempt failed.
type Failure struct {
	ID     int64
	Delay  time.Duration // until the next attempt
	GiveUp bool          // no further attempt unless somebody asks for it
}

// Backlog counts the events that no broker is known to have.
type Backlog struct {
	Pending int64 // waiting, being sent, or between two attempts
	Failed  int64 // given up
}
