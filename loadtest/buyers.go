package loadtest

import (
	"crypto/rand"
	"strconv"
	"sync"
	"time"
)

// Buyers are users who want a voucher. Each arrival is one of them, who asks for a unit: user FirstUser, the next one,
// and so on; after Users of them the first comes again, with a new request.
type Buyers struct {
	Client    *Client
	Recorder  *Recorder
	Voucher   string
	FirstUser int64   // at least 1
	Users     int64   // at least 1
	IDs       []int64 // the users, if they are not those from FirstUser on
	// Copies is how often a buyer sends the same request at the same time, as impatient people and broken apps do; 0
	// and 1 mean once. CopyShare is the share of buyers who do so, from 0 to 1.
	Copies    int
	CopyShare float64
	NoKeys    bool   // send no Idempotency-Key
	Name      string // of this load, so that its keys are no other's; NewName makes one
}

// NewName returns a name for a load that no other has.
func NewName() string { return rand.Text()[:10] }

// Buyer returns who comes with an arrival.
func (b *Buyers) Buyer(n int64) int64 {
	if b.IDs != nil {
		return b.IDs[n%int64(len(b.IDs))]
	}
	return b.FirstUser + n%b.Users
}

// Key returns the key of an arrival's request.
func (b *Buyers) Key(n int64) string {
	if b.NoKeys {
		return ""
	}
	key := make([]byte, 0, 40)
	key = append(key, b.Name...)
	key = append(key, '-')
	return string(strconv.AppendInt(key, n, 10))
}

// copies returns how often the arrival's request is sent.
func (b *Buyers) copies(n int64) int {
	if spread(n, b.CopyShare) {
		return max(b.Copies, 1)
	}
	return 1
}

// Buy asks for a unit, all copies at the same time, and returns the answer that the buyer goes by: the order, if one of
// the copies was answered with it.
func (b *Buyers) Buy(a Arrival) Answer {
	user, key, copies := b.Buyer(a.N), b.Key(a.N), b.copies(a.N)
	if copies == 1 {
		return b.place(user, key, a.Due)
	}
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

func (b *Buyers) place(user int64, key string, due time.Time) Answer {
	a := b.Client.Place(user, b.Voucher, key)
	b.Recorder.Record(OpPlace, user, b.Voucher, key, &a, since(&a, due))
	return a
}

// Pay pays an order.
func (b *Buyers) Pay(user int64, order string) Answer {
	a := b.Client.Pay(user, order, "")
	b.Recorder.Record(OpPay, user, b.Voucher, "", &a, a.Start)
	return a
}

// Cancel cancels an order.
func (b *Buyers) Cancel(user int64, order string) Answer {
	a := b.Client.Cancel(user, order)
	b.Recorder.Record(OpCancel, user, b.Voucher, "", &a, a.Start)
	return a
}

// Look reads an order.
func (b *Buyers) Look(user int64, order string) Answer {
	a := b.Client.Look(user, order)
	b.Recorder.Record(OpLook, user, b.Voucher, "", &a, a.Start)
	return a
}

// since is what a latency counts from: when the request was due, which the closed model leaves to the moment of sending.
func since(a *Answer, due time.Time) time.Time {
	if due.IsZero() {
		return a.Start
	}
	return due
}
