package loadtest

import (
	"sync"
)

// Tally is what clients believe to own. It counts from their answers alone, so that it can be held against what the
// shop says. Its size is that of the orders, not of the requests.
type Tally struct {
	mu     sync.Mutex
	owners map[string]int64 // of live orders
	held   map[holder]int   // live orders of a user
	closed int64
	shared int64 // orders that were answered to more than one user
}

type holder struct {
	user    int64
	voucher string
}

// NewTally returns an empty tally.
func NewTally() *Tally { return &Tally{owners: map[string]int64{}, held: map[holder]int{}} }

// Add takes down an entry. It is safe for use by many goroutines.
func (t *Tally) Add(e *Entry) {
	if e.Outcome.Class() != Accepted || e.Order == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	owner, known := t.owners[e.Order]
	switch {
	case e.Op == OpCancel && owner != 0:
		t.owners[e.Order] = 0
		t.closed++
		t.held[holder{e.User, e.Voucher}]--
	case e.Op != OpPlace && e.Op != OpList:
	case !known:
		t.owners[e.Order] = e.User
		t.held[holder{e.User, e.Voucher}]++
	case owner != 0 && owner != e.User:
		t.shared++
	}
}

// Owned is what clients own.
type Owned struct {
	Orders  int64 `json:"orders"` // ever
	Live    int64 `json:"live"`
	Closed  int64 `json:"closed"`
	Shared  int64 `json:"shared"`  // orders that were answered to two users
	Surplus int64 `json:"surplus"` // live orders beyond a limit of them a user
	Holders int64 `json:"holders"` // users with live orders
	Most    int   `json:"most"`    // live orders of one user, at most
}

// Owned sums up, given how many live orders a user may have.
func (t *Tally) Owned(limit int) Owned {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := Owned{Orders: int64(len(t.owners)), Closed: t.closed, Shared: t.shared}
	o.Live = o.Orders - o.Closed
	for _, n := range t.held {
		if n > 0 {
			o.Holders++
		}
		o.Surplus += int64(max(0, n-limit))
		o.Most = max(o.Most, n)
	}
	return o
}
