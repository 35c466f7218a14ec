package outbox

import (
	"context"
	"time"
)

// Maintenance is the store's side of the jobs that keep an outbox healthy. Concurrent calls of the same method, also
// from several processes, are harmless.
type Maintenance interface {
	// Health counts the events that a person should look at.
	Health(ctx context.Context, staleAfter time.Duration) (Health, error)

	// Purge removes up to limit events that were sent longer ago than age, in one small transaction, and returns how
	// many that were; those removed by somebody else at the same moment are not counted. With archive they move to a
	// table of their own.
	Purge(ctx context.Context, age time.Duration, limit int, archive bool) (int, error)

	// Unconsumed lists events of the types that were sent between now-c.Within and now-c.After, and that the consumer
	// has not recorded; at most limit, earliest first.
	Unconsumed(ctx context.Context, c Reconcile, limit int) ([]int64, error)
}

// Health is what a monitor looks at.
type Health struct {
	Backlog
	Stale  int64         // pending events that were created longer ago than is good
	Oldest time.Duration // since the oldest of those was created; 0 if there is none
}

// Healthy tells that nobody needs to be woken.
func (h Health) Healthy() bool { return h.Stale == 0 && h.Failed == 0 }

// Reconcile says what a consumer should have recorded.
type Reconcile struct {
	Consumer string
	Types    []string // none: every type
	After    time.Duration
	Within   time.Duration
}

// State is where an event of the outbox stands.
type State string

// The states.
const (
	Pending State = "pending"
	Sent    State = "sent"
	Failed  State = "failed"
)

// Entry is an event with what the outbox knows about it.
type Entry struct {
	Event
	State    State
	Attempts int       // that failed
	Due      time.Time // pending: when it is tried next; sent or failed: when it became that
}

// Admin is the store's side of what an operator does with single events.
type Admin interface {
	// List returns entries in a state with ids below before (0 for all), the highest first.
	List(ctx context.Context, state State, before int64, limit int) ([]Entry, error)

	// Show returns one entry; found is false if there is none.
	Show(ctx context.Context, id int64) (entry Entry, found bool, err error)

	// Retry makes failed events due now, with all their attempts before them, and pending ones that wait for their next
	// attempt too. It returns how many that were. Sent ones stay sent.
	Retry(ctx context.Context, ids []int64) (int, error)

	// RetryFailed is Retry for every failed event.
	RetryFailed(ctx context.Context) (int, error)
}
