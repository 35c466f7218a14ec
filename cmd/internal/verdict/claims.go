package verdict

import (
	"fmt"
	"io"
	"sync"
	"time"

	"seckill/loadtest"
	"seckill/service"
	"seckill/service/idgen"
)

// Claims are what clients were told. They are collected while load runs or read from a journal, and may be used by many
// goroutines. A request that was sent several times is remembered once.
type Claims struct {
	mu        sync.Mutex
	entries   int64
	answers   map[loadtest.Outcome]int64
	vouchers  map[idgen.ID]struct{}
	requests  map[requestKey]*request // nil: only orders are remembered
	orders    map[idgen.ID]*claimedOrder
	conflicts map[string][]map[string]string // claims that contradict each other, by the id of the check
	malformed error                          // the first entry that no shop can cause
}

// requestKey identifies a request. Requests without an idempotency key can only be told apart by their voucher.
type requestKey struct {
	user    service.UserID
	key     string
	voucher idgen.ID // 0 if there is a key
}

// request is what is known about the outcome of a request.
type request struct {
	voucher   idgen.ID
	order     idgen.ID  // of the answer; 0: none
	unknown   bool      // an answer left the outcome open
	openUntil time.Time // end of the last such answer
	finalAt   time.Time // start of the last request with a final answer
}

// unresolved reports whether the outcome is still unknown. After an answer that left it open, it stays unknown until an order
// is known, or until a final answer to a request that was sent after the last open answer ended.
func (r *request) unresolved() bool {
	return r.unknown && r.order == 0 && r.finalAt.Before(r.openUntil)
}

// claimedOrder is an order that an answer named.
type claimedOrder struct {
	user     service.UserID
	voucher  idgen.ID
	key      string // of the request that placed it, if known
	created  int    // number of answers with status 201
	owned    bool   // the user was told that the order is theirs
	shared   bool   // so was another user
	canceled bool
}

// NewClaims returns claims that remember orders and requests, for Check.
func NewClaims() *Claims {
	c := NewOrderClaims()
	c.requests = map[requestKey]*request{}
	return c
}

// NewOrderClaims returns claims that remember only orders, so that refused requests take no memory. They are for Owned.
func NewOrderClaims() *Claims {
	return &Claims{
		answers: map[loadtest.Outcome]int64{}, vouchers: map[idgen.ID]struct{}{}, orders: map[idgen.ID]*claimedOrder{},
		conflicts: map[string][]map[string]string{},
	}
}

// ReadJournal returns the claims of a journal.
func ReadJournal(journal io.Reader) (*Claims, error) {
	c := NewClaims()
	err := loadtest.ReadJournal(journal, func(e *loadtest.Entry) error {
		c.Add(e)
		return c.Err()
	})
	return c, err
}

// Add adds a request and its answer. An entry that no shop can cause, such as one with a malformed order id, is reported
// by Err.
func (c *Claims) Add(e *loadtest.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries++
	if err := c.add(e); err != nil && c.malformed == nil {
		c.malformed = err
	}
}

// Err returns the first error of Add.
func (c *Claims) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.malformed
}

func (c *Claims) add(e *loadtest.Entry) error {
	if e.Op == loadtest.OpCancel {
		return c.cancel(e)
	}
	if e.Op != loadtest.OpPlace && e.Op != loadtest.OpList {
		return nil
	}
	voucher, err := idgen.ParseID(e.Voucher)
	if err != nil {
		return fmt.Errorf("voucher: %w", err)
	}
	c.vouchers[voucher] = struct{}{}
	if e.Op == loadtest.OpPlace {
		c.answers[e.Outcome]++
	}
	r := c.request(e, voucher)
	r.answered(e)
	if e.Order == "" {
		return nil
	}
	order, err := idgen.ParseID(e.Order)
	if err != nil {
		return fmt.Errorf("order: %w", err)
	}
	c.addOrder(e, r, order, voucher)
	return nil
}

func (c *Claims) cancel(e *loadtest.Entry) error {
	if e.Order == "" || e.Outcome.Class() != loadtest.Accepted {
		return nil
	}
	id, err := idgen.ParseID(e.Order)
	if err != nil {
		return fmt.Errorf("order: %w", err)
	}
	if o := c.orders[id]; o != nil {
		o.canceled = true
	}
	return nil
}

func (c *Claims) request(e *loadtest.Entry, voucher idgen.ID) *request {
	if c.requests == nil {
		return &request{}
	}
	key := requestKey{user: service.UserID(e.User), key: e.Key}
	if e.Key == "" {
		key.voucher = voucher
	}
	r := c.requests[key]
	if r == nil {
		r = &request{voucher: voucher}
		c.requests[key] = r
	}
	return r
}

// answered updates what is known about the outcome.
func (r *request) answered(e *loadtest.Entry) {
	class := e.Outcome.Class()
	final := e.Outcome.Final()
	if e.Op == loadtest.OpList {
		final = class == loadtest.Accepted
	}
	switch {
	case final && e.At.After(r.finalAt):
		r.finalAt = e.At
	case e.Op == loadtest.OpPlace && class == loadtest.Unknown:
		r.unknown = true
		if end := e.At.Add(e.Took); end.After(r.openUntil) {
			r.openUntil = end
		}
	}
}

// addOrder adds the order that an answer names.
func (c *Claims) addOrder(e *loadtest.Entry, r *request, id, voucher idgen.ID) {
	user := service.UserID(e.User)
	o := c.orders[id]
	if o == nil {
		o = &claimedOrder{user: user, voucher: voucher}
		c.orders[id] = o
	}
	accepted := e.Outcome.Class() == loadtest.Accepted
	o.owned = o.owned || accepted
	if o.user != user {
		o.shared = o.shared || accepted
		c.conflict(orderTwoUsers, "order", id, "user", o.user, "other_user", user)
	}
	if e.Op != loadtest.OpPlace || !accepted {
		return // the order exists, but this request did not place it
	}
	if e.Outcome == loadtest.Placed {
		if o.created++; o.created == 2 {
			c.conflict(orderCreatedTwice, "order", id, "user", user, "key", e.Key)
		}
	}
	if e.Key == "" {
		return
	}
	o.key = e.Key
	if r.order != 0 && r.order != id {
		c.conflict(requestTwoOrders, "user", user, "key", e.Key, "order", r.order, "other_order", id)
	}
	r.order = id
}

func (c *Claims) conflict(check string, columns ...any) {
	c.conflicts[check] = append(c.conflicts[check], row(columns...))
}

// row makes a finding's row of names and values.
func row(columns ...any) map[string]string {
	r := map[string]string{}
	for i := 0; i < len(columns); i += 2 {
		r[fmt.Sprint(columns[i])] = fmt.Sprint(columns[i+1])
	}
	return r
}

// Owned is what clients believe to own, from their answers alone.
type Owned struct {
	Orders     int64 `json:"orders"` // ever placed
	Live       int64 `json:"live"`
	Holders    int64 `json:"holders"`    // users with live orders
	Duplicates int64 `json:"duplicates"` // live orders beyond the limit of their users
	Shared     int64 `json:"shared"`     // orders that were answered to two users
}

// Owned sums up what clients own, if a user may have limit live orders of a voucher.
func (c *Claims) Owned(limit int) (own Owned) {
	type holder struct {
		user    service.UserID
		voucher idgen.ID
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	held := map[holder]int{}
	for _, o := range c.orders {
		if !o.owned {
			continue
		}
		own.Orders++
		if o.shared {
			own.Shared++
		}
		if o.canceled {
			continue
		}
		own.Live++
		n := held[holder{o.user, o.voucher}] + 1
		held[holder{o.user, o.voucher}] = n
		if n > limit {
			own.Duplicates++
		}
	}
	own.Holders = int64(len(held))
	return own
}
