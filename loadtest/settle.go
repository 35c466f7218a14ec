package loadtest

import (
	"context"
	"maps"
	"slices"
	"sync/atomic"
	"time"
)

// Settled counts requests whose outcome was unknown.
type Settled struct {
	Unknown int64 `json:"unknown"` // requests; copies of one request count once
	Settled int64 `json:"settled"` // of them, resolved
	Open    int64 `json:"open"`    // of them, still unknown
}

// settleClients is the number of clients that settle requests at the same time.
const settleClients = 32

// Pauses between two attempts to settle a request.
const (
	firstPause = 50 * time.Millisecond
	lastPause  = time.Second
)

// Settle repeats every request of unknown outcome, with its key, until the answer is final or ctx ends, as the API asks its
// clients to do. A request without a key cannot be repeated without ordering a second unit, so Settle lists the buyer's
// orders instead. It records every request.
func Settle(ctx context.Context, c *Client, r *Recorder, unknown []Entry) Settled {
	once := map[openRequest]struct{}{}
	for i := range unknown {
		once[openRequest{unknown[i].User, unknown[i].Voucher, unknown[i].Key}] = struct{}{}
	}
	requests := slices.Collect(maps.Keys(once))
	var settled atomic.Int64
	load := Load{Clients: settleClients, Arrivals: int64(len(requests))}
	_ = load.Run(ctx, func(a Arrival) { // fails only if there are no requests
		if settle(ctx, c, r, requests[a.N]) {
			settled.Add(1)
		}
	}, nil)
	n := int64(len(requests))
	return Settled{Unknown: n, Settled: settled.Load(), Open: n - settled.Load()}
}

// openRequest is a request whose outcome is unknown.
type openRequest struct {
	user         int64
	voucher, key string
}

// settle reports whether the request was settled.
func settle(ctx context.Context, c *Client, r *Recorder, q openRequest) bool {
	for pause := firstPause; ctx.Err() == nil; pause = min(2*pause, lastPause) {
		if q.key != "" {
			a := c.Place(q.user, q.voucher, q.key)
			r.Record(OpPlace, q.user, q.voucher, q.key, &a, a.Start)
			if a.Outcome.Final() {
				return true
			}
		} else if list(c, r, q.user, q.voucher) {
			return true
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return false
}

// list records the orders of a voucher that a user has.
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
	if !found { // no order is an answer too
		r.Record(OpList, user, voucher, "", &a, start)
	}
	return true
}
