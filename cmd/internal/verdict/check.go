package verdict

import (
	"context"
	"errors"
	"maps"
	"slices"

	"seckill/repository"
	"seckill/service"
	"seckill/service/idgen"
)

// The ids of the checks that compare claims with orders.
const (
	orderLost         = "order-lost"
	orderMismatch     = "order-mismatch"
	orderRefused      = "order-refused"
	orderUnclaimed    = "order-unclaimed"
	outcomeUnresolved = "outcome-unresolved"
	requestTwoOrders  = "request-two-orders"
	orderCreatedTwice = "order-created-twice"
	orderTwoUsers     = "order-two-users"
)

// claimChecks lists these checks in the order of the report, with the invariant that each belongs to.
var claimChecks = []Finding{
	{ID: orderLost, Invariant: 4, Check: "every order that a client was told of exists"},
	{ID: orderMismatch, Invariant: 4, Check: "it has the same user, voucher and request in the database"},
	{ID: orderRefused, Invariant: 4, Check: "no order exists whose request was refused or failed"},
	{ID: orderUnclaimed, Invariant: 4, Check: "no order exists that its buyer was not told of"},
	{ID: outcomeUnresolved, Invariant: 4, Check: "every unknown outcome was resolved"},
	{ID: requestTwoOrders, Invariant: 3, Check: "no request was answered with two orders"},
	{ID: orderCreatedTwice, Invariant: 3, Check: "no order was answered as new twice"},
	{ID: orderTwoUsers, Invariant: 5, Check: "no order was answered to two users"},
}

// Options say what can be expected of the database and of the claims.
type Options struct {
	// Settled says that nothing is running and that the outbox is drained, see repository.AuditOptions.
	Settled bool
	// Complete says that only these clients ordered these vouchers, so that every order must be claimed.
	Complete bool
}

// Check audits the database and compares its orders with the claims, if there are any. No request may be under way: an
// order that is placed after its buyer gave up looks like an order that nobody was told of. More claims can be added
// afterwards and checked again.
func Check(ctx context.Context, db *repository.DB, claims *Claims, opts Options) (*Verdict, error) {
	audit, err := db.Audit(ctx, repository.AuditOptions{Settled: opts.Settled})
	if err != nil {
		return nil, err
	}
	v := fromAudit(&audit)
	if claims != nil {
		err = claims.check(ctx, db, opts.Complete, v)
	}
	return v, err
}

// check adds to the verdict what the comparison finds.
func (c *Claims) check(ctx context.Context, db *repository.DB, complete bool, v *Verdict) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.malformed != nil:
		return c.malformed
	case c.requests == nil:
		return errors.New("these claims remember only orders and cannot be checked")
	}
	run := comparison{
		Claims: c, complete: complete, sales: map[idgen.ID]*Sale{}, missing: maps.Clone(c.orders), broken: maps.Clone(c.conflicts),
	}
	for id := range c.vouchers {
		run.sales[id] = &Sale{Voucher: id}
	}
	if err := db.EachOrder(ctx, slices.Collect(maps.Keys(c.vouchers)), run.order); err != nil {
		return err
	}
	run.addLost()
	run.addUnresolved()
	run.report(v)
	return nil
}

// comparison is one pass over the orders of the claimed vouchers.
type comparison struct {
	*Claims
	complete bool
	sales    map[idgen.ID]*Sale
	missing  map[idgen.ID]*claimedOrder // claimed orders that were not found yet
	broken   map[string][]map[string]string
	unknown  int64 // requests
}

func (c *comparison) add(check string, columns ...any) {
	c.broken[check] = append(c.broken[check], row(columns...))
}

// order compares an order with the claims about it, or about its request.
func (c *comparison) order(o service.Order) error {
	c.sales[o.VoucherID].count(o.Status)
	columns := []any{"order", o.ID, "user", o.UserID, "voucher", o.VoucherID, "request", o.RequestID}
	if claim := c.missing[o.ID]; claim != nil {
		delete(c.missing, o.ID)
		if claim.user != o.UserID || claim.voucher != o.VoucherID || (claim.key != "" && claim.key != o.RequestID) {
			c.add(orderMismatch, append(columns, "claimed_user", claim.user, "claimed_voucher", claim.voucher, "claimed_request", claim.key)...)
		}
		return nil
	}
	if r := c.Claims.requests[requestKey{user: o.UserID, key: o.RequestID}]; r != nil {
		switch {
		case r.unresolved(): // a separate finding; an order may exist
		case r.order != 0:
			c.add(orderMismatch, append(columns, "claimed_order", r.order)...)
		default:
			c.add(orderRefused, columns...)
		}
		return nil
	}
	r := c.Claims.requests[requestKey{user: o.UserID, voucher: o.VoucherID}]
	switch keyless := o.RequestID == o.ID.String(); {
	case r != nil && r.unresolved():
	case r != nil && keyless, c.complete:
		c.add(orderUnclaimed, columns...)
	}
	return nil
}

// addLost adds the claimed orders that the database does not have.
func (c *comparison) addLost() {
	for id, o := range c.missing {
		c.add(orderLost, "order", id, "user", o.user, "voucher", o.voucher, "request", o.key)
	}
}

// addUnresolved adds the requests whose outcome is still unknown.
func (c *comparison) addUnresolved() {
	for key, r := range c.Claims.requests {
		if r.unknown {
			c.unknown++
		}
		if r.unresolved() {
			c.add(outcomeUnresolved, "user", key.user, "voucher", r.voucher, "request", key.key)
		}
	}
}

func (c *comparison) report(v *Verdict) {
	for _, f := range claimChecks {
		rows := c.broken[f.ID]
		f.Broken, f.Rows = int64(len(rows)), rows[:min(len(rows), maxRows)]
		v.add(f)
	}
	for _, id := range slices.Sorted(maps.Keys(c.sales)) {
		v.Sales = append(v.Sales, *c.sales[id])
	}
	v.Answers = maps.Clone(c.answers)
	v.Requests, v.Acknowledged = c.entries, int64(len(c.orders))
	v.Unknown = c.unknown
}
