package outbox

import (
	"context"
	"time"
)

// Store holds the rows of the outbox for a Relay. All times are the database's own; callers pass durations. Any number
// of processes may use the same store, and an event is claimed by one of them at a time.
type Store interface {
	// Claim takes up to c.Limit due events for c.Lease, earliest first. The batch is empty after an error, if nothing is due,
	// or if others were faster, which Contended reports. Events that are not marked within the lease are due again.
	Claim(ctx context.Context, c Claim) (Batch, error)

	// MarkSent marks events that the broker has confirmed, even if another claim holds them now.
	MarkSent(ctx context.Context, ids []int64) error

	// MarkFailed counts an attempt for each event, and makes it due again after its delay or gives it up. It skips events
	// that are no longer held under the token.
	MarkFailed(ctx context.Context, token string, failures []Failure) error

	// Release makes events due at once without counting an attempt. It skips events that are no longer held under the
	// token.
	Release(ctx context.Context, token string, ids []int64) error

	// Backlog counts the events that are not sent.
	Backlog(ctx context.Context) (Backlog, error)
}

// Claim selects the events to take.
type Claim struct {
	Limit int
	Lease time.Duration
	// Overdue and MinAttempts narrow the claim to events that have been due for at least Overdue, or whose attempts
	// failed at least MinAttempts times. With zero values everything that is due is taken.
	Overdue     time.Duration
	MinAttempts int
}

// Batch is a set of claimed events.
type Batch struct {
	Token     string  // identifies the claim; new for each
	Events    []Event // in the order in which they became due
	Attempts  []int   // failed attempts of each event
	Contended bool    // other claims took some of the events at the same moment
}

// Failure is the consequence of a failed attempt.
type Failure struct {
	ID     int64
	Delay  time.Duration // until the next attempt
	GiveUp bool          // no further attempt until an operator asks for one
}

// Backlog counts the events that are not known to be published.
type Backlog struct {
	Pending int64 // waiting, being published, or between two attempts
	Failed  int64 // given up
}

// WaitEmpty waits until no event is pending or ctx ends, and returns the last backlog. It does not wait for events that
// were given up.
func WaitEmpty(ctx context.Context, s Store) (Backlog, error) {
	for {
		start := time.Now()
		b, err := s.Backlog(ctx)
		if err != nil || b.Pending == 0 {
			return b, err
		}
		pause := max(20*time.Millisecond, 5*time.Since(start)) // counting a large backlog must not slow down its relay
		select {
		case <-ctx.Done():
			return b, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// Maintenance is the store's side of the Jobs. Concurrent calls of the same method, also from several processes, are
// harmless.
type Maintenance interface {
	// Health counts the events that an operator should know of.
	Health(ctx context.Context, staleAfter time.Duration) (Health, error)

	// Purge removes up to limit events that were sent longer than age ago, in one small transaction, and returns their
	// number. With archive it moves them to another table.
	Purge(ctx context.Context, age time.Duration, limit int, archive bool) (int, error)

	// Unconsumed lists events that were sent between c.Within and c.After ago and that the consumer has not recorded: at
	// most limit, earliest first.
	Unconsumed(ctx context.Context, c Reconcile, limit int) ([]int64, error)
}

// Health is the state of an outbox.
type Health struct {
	Backlog
	Stale  int64         // pending events that are older than the limit
	Oldest time.Duration // age of the oldest of those; 0 if there is none
}

// Reconcile says which events a consumer should have recorded.
type Reconcile struct {
	Consumer string
	Types    []string // empty: every type
	After    time.Duration
	Within   time.Duration
}

// Admin is the store's side of what an operator does with single events.
type Admin interface {
	// List returns entries in a state with ids below before (0 for all), the highest id first.
	List(ctx context.Context, state State, before int64, limit int) ([]Entry, error)

	// Show returns one entry; found is false if there is none.
	Show(ctx context.Context, id int64) (entry Entry, found bool, err error)

	// Retry makes events due now and resets their attempts: failed ones, and pending ones that wait for their next
	// attempt. It returns their number and skips sent events.
	Retry(ctx context.Context, ids []int64) (int, error)

	// RetryFailed does the same for every failed event.
	RetryFailed(ctx context.Context) (int, error)
}

// State is the state of an event in the outbox.
type State string

// The states.
const (
	Pending State = "pending"
	Sent    State = "sent"
	Failed  State = "failed"
)

// Entry is an event with its state in the outbox.
type Entry struct {
	Event
	State    State
	Attempts int       // failed attempts
	Due      time.Time // pending: the next attempt; sent or failed: when it was sent or given up
}
