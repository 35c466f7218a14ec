package loadtest

import (
	"context"
	"sync"
	"time"
)

// Settled is what became of requests whose outcome was unknown.
type Settled struct {
	Unknown int64 `json:"unknown"` // requests, each counted once however many copies of it there were
	Settled int64 `json:"settled"` // of them, what became of them is known now
	Open    int64 `json:"open"`    // of them, it is still not
}

// settlers is how many requests are settled at the same time.
const settlers = 32

// Pauses between two tries to settle a request: it may still be under way, or the shop may still be away.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
)

// Settle repeats every request of unknown outcome, with its key, until its answer is final or ctx ends: this is what
// the shop asks of its clients. A request that has no key cannot be repeated without asking for a second unit; its
// buyer's orders are listed instead. Everything is recorded.
func Settle(ctx context.Context, c *Client, r *Recorder, unknown []Entry) Settled {
	type request struct {
		user         int64
		voucher, key string
	}
	once := map[request]struct{}{}
	for i := range unknown {
		once[request{unknown[i].User, unknown[i].Voucher, unknown[i].Key}] = struct{}{}
	}
	work := make(chan request)
	var mu sync.Mutex
	result := Settled{Unknown: int64(len(once))}
	var workers sync.WaitGroup
	for range min(settlers, len(once)) {
		workers.Go(func() {
			for q := range work {
				if settle(ctx, c, r, q.user, q.voucher, q.key) {
					mu.Lock()
					result.Settled++
					mu.Unlock()
				}
			}
		})
	}
	for q := range once {
		work <- q
	}
	close(work)
	workers.Wait()
	result.Open = result.Unknown - result.Settled
	return result
}

// settle tells whether the request could be settled.
func settle(ctx context.Context, c *Client, r *Recorder, user int64, voucher, key string) bool {
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, lastPause) {
		if key != "" {
			a := c.Place(user, voucher, key)
			r.Record(OpPlace, user, voucher, key, &a, a.Start)
			if a.Outcome.Final() {
				return true
			}
		} else if list(c, r, user, voucher) {
			return true
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return false
}

// list records which orders of a voucher a user has.
func list(c *Client, r *Recorder, user int64, voucher string) bool {
	start := time.Now()
	orders, err := c.Orders(user)
	a := Answer{Outcome: Done, Status: 200, Start: start, Took: time.Since(start)}
	if err != nil {
		a.Outcome, a.Status, a.Err = Unexpected, 0, err
		r.Record(OpList, user, voucher, "", &a, start)
		return false
	}
	found := false
	for i := range orders {
		if orders[i].VoucherID == voucher {
			a.Order, found = orders[i].ID, true
			r.Record(OpList, user, voucher, "", &a, start)
		}
	}
	if !found { // that there is none is an answer too
		r.Record(OpList, user, voucher, "", &a, start)
	}
	return true
}
