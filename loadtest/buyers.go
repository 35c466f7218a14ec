package loadtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"
)

// Buyers are the users of a load who want one voucher. Each arrival is one of them, who orders a unit:
// arrival n is user FirstUser + n mod Users. So after Users arrivals, the first user comes again with a new request.
type Buyers struct {
	Client    *Client
	Recorder  *Recorder
	Voucher   string
	FirstUser int64   // at least 1
	Users     int64   // at least 1
	IDs       []int64 // the users, if they are not numbered from FirstUser
	// Copies is how often a buyer sends the same request at the same time, as impatient people and broken apps do; 0
	// and 1 mean once. CopyShare is the share of buyers who do so, from 0 to 1.
	Copies    int
	CopyShare float64
	NoKeys    bool   // send no Idempotency-Key
	Name      string // begins the keys of this load, so that they differ from those of other loads; see NewName
}

// NewName returns a unique name for a load.
func NewName() string { return rand.Text()[:10] }

// drainTime is how long requests under way may take after the load was cancelled.
const drainTime = 3 * time.Second

// Run runs the load; act is called for every arrival. If ctx ends, requests under way have some seconds to end before
// their connections are closed. Run records dropped arrivals.
func (b *Buyers) Run(ctx context.Context, load Load, act func(Arrival)) error {
	ended := make(chan struct{})
	defer close(ended)
	context.AfterFunc(ctx, func() {
		select {
		case <-ended:
		case <-time.After(drainTime):
			b.Client.Abort()
		}
	})
	return load.Run(ctx, act, func(a Arrival) { b.Recorder.Drop(a.Due) })
}

// Settle repeats the requests whose outcome is unknown until it is known, for as long as timeout.
func (b *Buyers) Settle(ctx context.Context, timeout time.Duration) Settled {
	unknown := b.Recorder.TakeUnknown()
	if len(unknown) == 0 {
		return Settled{}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return Settle(ctx, b.Client, NewRecorder(b.Recorder.journal), unknown)
}

// Buyer returns the user of an arrival.
func (b *Buyers) Buyer(n int64) int64 {
	if b.IDs != nil {
		return b.IDs[n%int64(len(b.IDs))]
	}
	return b.FirstUser + n%b.Users
}

// Key returns the Idempotency-Key of an arrival.
func (b *Buyers) Key(n int64) string {
	if b.NoKeys {
		return ""
	}
	return fmt.Sprintf("%s-%d", b.Name, n)
}

// copies returns how often the request of an arrival is sent.
func (b *Buyers) copies(n int64) int {
	if inShare(n, b.CopyShare) {
		return max(b.Copies, 1)
	}
	return 1
}

// Buy orders a unit, sending all copies at the same time. It returns the answer that counts for the buyer: the order, if
// any copy was answered with one.
func (b *Buyers) Buy(a Arrival) Answer {
	user, key, copies := b.Buyer(a.N), b.Key(a.N), b.copies(a.N)
	answers := make([]Answer, copies)
	var others sync.WaitGroup
	for i := 1; i < copies; i++ {
		others.Go(func() { answers[i] = b.place(user, key, a.Due) })
	}
	answers[0] = b.place(user, key, a.Due)
	others.Wait()
	best := answers[0]
	for _, answer := range answers[1:] {
		if answer.Outcome.Class() == Accepted && best.Outcome != Placed {
			best = answer
		}
	}
	return best
}

// place orders a unit. Its latency counts from when the request was due; in the closed model, from when it was sent.
func (b *Buyers) place(user int64, key string, due time.Time) Answer {
	a := b.Client.Place(user, b.Voucher, key)
	if due.IsZero() {
		due = a.Start
	}
	b.Recorder.Record(OpPlace, user, b.Voucher, key, &a, due)
	return a
}

// Pay pays an order.
func (b *Buyers) Pay(user int64, order string) Answer {
	return b.record(OpPay, user, b.Client.Pay(user, order))
}

// Cancel cancels an order.
func (b *Buyers) Cancel(user int64, order string) Answer {
	return b.record(OpCancel, user, b.Client.Cancel(user, order))
}

// Read reads an order.
func (b *Buyers) Read(user int64, order string) Answer {
	return b.record(OpRead, user, b.Client.Read(user, order))
}

func (b *Buyers) record(op Op, user int64, a Answer) Answer {
	b.Recorder.Record(op, user, b.Voucher, "", &a, a.Start)
	return a
}
