package reconcile

import (
	"context"
	"maps"
	"slices"

	"seckill/loadtest"
	"seckill/repository"
	"seckill/service"
	"seckill/service/idgen"
)

// The checks, as findings name them.
const (
	checkExists      = "every order that a client was told of is in the database"
	checkSame        = "it is there for the same user, voucher and request"
	checkFailed      = "no order stands whose request was refused or failed"
	checkSettled     = "every unknown outcome was settled"
	checkTold        = "no order stands that its buyer was not told of"
	checkOneUser     = "no order was answered to two users"
	checkOneOrder    = "no request was answered with two orders"
	checkOneCreation = "no order was answered twice as new"
)

// checks lists them in the order of the report, with the invariant that each belongs to.
var checks = []struct {
	invariant int
	name      string
}{
	{4, checkExists}, {4, checkSame}, {4, checkFailed}, {4, checkSettled}, {4, checkTold},
	{3, checkOneOrder}, {3, checkOneCreation}, {5, checkOneUser},
}

// Verdict says whether clients and database agree.
type Verdict struct {
	OK       bool                       `json:"ok"`
	Entries  int64                      `json:"entries"`  // of the journal
	Outcomes map[loadtest.Outcome]int64 `json:"outcomes"` // of requests to place an order
	Unknown  int64                      `json:"unknown"`  // requests that at least one answer left open
	Open     int64                      `json:"open"`     // of them, not settled
	Told     int64                      `json:"told"`     // orders that clients know of
	Sales    []Sale                     `json:"sales"`    // one for each voucher, by id
	Findings []repository.Finding       `json:"findings,omitempty"`
}

// Sale is what the database holds of a voucher.
type Sale struct {
	Voucher    idgen.ID `json:"voucher_id"`
	Orders     int64    `json:"orders"` // ever placed
	Live       int64    `json:"live"`
	Paid       int64    `json:"paid"`
	Closed     int64    `json:"closed"`
	Buyers     int64    `json:"buyers"`     // users with live orders
	Duplicates int64    `json:"duplicates"` // live orders beyond one a user
}

// Options say how much the book knows.
type Options struct {
	// Whole: nobody but the book's clients ordered these vouchers, so every order has to be in it.
	Whole bool
}

// findingRows is how many offending rows a finding shows.
const findingRows = 10

// Check reads every order of the book's vouchers. Nothing may be under way: an order that was placed after its buyer
// gave up would look like one that nobody was told of. The book can be added to and checked again.
func (b *Book) Check(ctx context.Context, db *repository.DB, opts Options) (Verdict, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := check{book: b, opts: opts, broken: maps.Clone(b.broken), live: map[wish]int64{}, sales: map[idgen.ID]*Sale{}}
	for _, t := range b.orders {
		t.found = false
	}
	for id := range b.vouchers {
		c.sales[id] = &Sale{Voucher: id}
	}
	err := db.EachOrder(ctx, slices.Collect(maps.Keys(b.vouchers)), func(o repository.LedgerOrder) error {
		c.count(&o)
		c.order(&o)
		return nil
	})
	if err != nil {
		return Verdict{}, err
	}
	c.missing()
	unknown, open := c.open()
	return c.verdict(unknown, open), nil
}

// check is one run over the orders.
type check struct {
	book   *Book
	opts   Options
	broken map[string][]map[string]any
	live   map[wish]int64
	sales  map[idgen.ID]*Sale
}

func (c *check) found(name string, row map[string]any) { c.broken[name] = append(c.broken[name], row) }

func (c *check) count(o *repository.LedgerOrder) {
	s := c.sales[o.VoucherID]
	s.Orders++
	switch o.Status {
	case service.Closed:
		s.Closed++
		return
	case service.Paid:
		s.Paid++
	}
	s.Live++
	w := wish{o.UserID, o.VoucherID}
	if c.live[w]++; c.live[w] == 1 {
		s.Buyers++
	} else {
		s.Duplicates++
	}
}

// order holds one order against what was told about it, and about its request.
func (c *check) order(o *repository.LedgerOrder) {
	t := c.book.orders[o.ID]
	if t != nil {
		t.found = true
		if t.wish != (wish{o.UserID, o.VoucherID}) || (t.key != "" && t.key != o.RequestID) {
			c.found(checkSame, map[string]any{"order": o.ID, "user": o.UserID, "voucher": o.VoucherID, "request": o.RequestID,
				"told_user": t.user, "told_voucher": t.voucher, "told_request": t.key})
		}
		return
	}
	row := map[string]any{"order": o.ID, "user": o.UserID, "voucher": o.VoucherID, "request": o.RequestID}
	if m := c.book.requests[request{o.UserID, o.RequestID}]; m != nil {
		switch {
		case m.open(): // that is a finding of its own, and it may well have an order
		case m.order != 0:
			row["told_order"] = m.order
			c.found(checkSame, row)
		default:
			c.found(checkFailed, row)
		}
		return
	}
	m := c.book.keyless[wish{o.UserID, o.VoucherID}]
	switch {
	case m != nil && m.open():
	case m != nil && o.RequestID == o.ID.String(), c.opts.Whole:
		c.found(checkTold, row)
	}
}

// missing finds the orders that clients were told of and that the database does not have.
func (c *check) missing() {
	for id, t := range c.book.orders {
		if !t.found {
			c.found(checkExists, map[string]any{"order": id, "user": t.user, "voucher": t.voucher, "request": t.key})
		}
	}
}

// open finds the requests of which nobody knows what became.
func (c *check) open() (unknown, open int64) {
	note := func(m *memory, user service.UserID, key string) {
		if m.unknown {
			unknown++
		}
		if m.open() {
			open++
			c.found(checkSettled, map[string]any{"user": user, "voucher": m.voucher, "request": key})
		}
	}
	for q, m := range c.book.requests {
		note(m, q.user, q.key)
	}
	for w, m := range c.book.keyless {
		note(m, w.user, "")
	}
	return unknown, open
}

func (c *check) verdict(unknown, open int64) Verdict {
	v := Verdict{
		OK: true, Entries: c.book.entries, Outcomes: maps.Clone(c.book.outcomes), Unknown: unknown, Open: open, Told: int64(len(c.book.orders)),
	}
	for _, check := range checks {
		rows := c.broken[check.name]
		f := repository.Finding{Invariant: check.invariant, Check: check.name, OK: len(rows) == 0, Broken: int64(len(rows))}
		f.Rows = rows[:min(len(rows), findingRows)]
		v.OK = v.OK && f.OK
		v.Findings = append(v.Findings, f)
	}
	for _, id := range slices.Sorted(maps.Keys(c.sales)) {
		v.Sales = append(v.Sales, *c.sales[id])
	}
	return v
}
