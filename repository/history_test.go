package repository

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"seckill/repository/repotest/faultproxy"
	"seckill/service"
	"seckill/service/idgen"
)

// history is a random sequence of requests to a database and to the model. Its seed determines it.
type history struct {
	t     *testing.T
	db    *DB
	wire  *wire
	proxy *faultproxy.Proxy // nil: connections break in the wire only
	limit time.Duration     // of a request
	rng   *rand.Rand
	spoil func(batch []*service.Placement) // what a broken shop would do to verdicts; usually nil

	model    *shopModel
	vouchers []idgen.ID
	users    []service.UserID
	last     []*service.Placement // to be repeated
	log      []string
}

// action is one request: how the database is asked, and the model. Both return the answer as text.
type action struct {
	name  string
	batch []*service.Placement // of a placement
	asked []service.Order      // what it asked for: answers go into the batch
	ask   func(ctx context.Context) string
	model func(m *shopModel) string
}

// run runs some steps of a history and returns the first difference.
func (h *history) run(steps int) error {
	h.model = newModel()
	for range 2 {
		stock, limit := h.rng.Int64N(7), 1+h.rng.IntN(3)
		id := onSale(h.t, h.db, stock, limit)
		h.vouchers = append(h.vouchers, id)
		h.model.vouchers[id] = modelVoucher{total: stock, stock: stock, limit: limit}
	}
	for range 4 {
		h.users = append(h.users, service.UserID(nextID()))
	}
	for range steps {
		if err := h.step(h.next()); err != nil {
			return fmt.Errorf("%w\n%s", err, strings.Join(h.log, "\n"))
		}
	}
	return nil
}

// step sends a request to the database, with a fault or none, and to the model. It compares the answers and all rows.
func (h *history) step(a action) error {
	ctx, cancel := context.WithTimeout(h.t.Context(), h.limit)
	defer cancel()
	fault := h.arm(cancel)
	before := h.model
	after := before.clone()
	want := a.model(after)
	got := a.ask(ctx)
	h.wire.set(func(w *wire) { w.before, w.after = nil, nil })
	h.log = append(h.log, fmt.Sprintf("  %s%s: %s", a.name, fault, got))
	stands, err := h.snapshot()
	if err != nil {
		return err
	}
	h.model = after
	if fault.fired && fault.crash {
		return h.adopt(a, before, after, got, want, stands)
	}
	if got != want {
		return fmt.Errorf("%s%s was answered %s, want %s", a.name, fault, got, want)
	}
	if !slices.Equal(stands, after.snapshot()) {
		return fmt.Errorf("%s%s left:%s", a.name, fault, difference(stands, after.snapshot()))
	}
	return nil
}

// adopt applies to the model what an instance did before it crashed, if that is possible and agrees with the answer.
func (h *history) adopt(a action, before, after *shopModel, got, want string, stands []string) error {
	if a.batch != nil {
		return h.adoptBatch(a, before, stands)
	}
	wasDone, wasNot := slices.Equal(stands, after.snapshot()), slices.Equal(stands, before.snapshot())
	ok := false
	switch got {
	case string(service.CodeUnknown):
		ok = wasDone || wasNot
	case string(service.CodeUnavailable):
		ok = wasNot
	default:
		ok = wasDone && got == want
	}
	if !ok {
		return fmt.Errorf("%s crashed, was answered %q (else %q), and left:%s", a.name, got, want, difference(stands, before.snapshot()))
	}
	if !wasDone {
		h.model = before
	}
	return nil
}

// adoptBatch is adopt for a placement, whose orders are done one by one.
func (h *history) adoptBatch(a action, before *shopModel, stands []string) error {
	h.model = before.clone()
	for i, said := range verdicts(a.batch) {
		asked := a.asked[i]
		prefix := "order " + asked.ID.String() + ":"
		there := slices.ContainsFunc(stands, func(line string) bool { return strings.HasPrefix(line, prefix) })
		if there != (said == "placed") && said != string(service.CodeUnknown) {
			return fmt.Errorf("%s crashed: order %s was answered %s, and stands: %v", a.name, asked.ID, said, there)
		}
		if !there {
			continue
		}
		if verdict, _ := h.model.place(&asked); verdict != "placed" {
			return fmt.Errorf("%s crashed: order %s stands, want %s", a.name, asked.ID, verdict)
		}
	}
	if !slices.Equal(stands, h.model.snapshot()) {
		return fmt.Errorf("%s crashed and left:%s", a.name, difference(stands, h.model.snapshot()))
	}
	return nil
}

// fault is the failure in a step, if there is one.
type fault struct {
	text         string
	fired, crash bool
}

func (f *fault) String() string {
	if !f.fired {
		return ""
	}
	return " [" + f.text + "]"
}

// arm plans a failure at one of the next statements, in half of the steps: the connection is lost before or after it, or
// the instance dies, that is, its context ends and no other tries again.
func (h *history) arm(die func()) *fault {
	f := &fault{}
	at, kind, after := h.rng.IntN(14), h.rng.IntN(8), h.rng.IntN(2) == 1
	if kind >= 4 {
		return f
	}
	f.crash = kind == 0
	n := 0
	strike := func(query string, err error) error {
		if n++; n != at+1 {
			return err
		}
		verb, _, _ := strings.Cut(query, " ")
		f.fired, f.text = true, fmt.Sprintf("%d at %s, after %v", kind, verb, after)
		switch {
		case f.crash:
			die()
			return err
		case kind == 1 && h.proxy != nil && query == "COMMIT":
			h.proxy.DropReply(faultproxy.Contains("COMMIT"))
			return err
		case kind == 1 && h.proxy != nil:
			h.proxy.Cut()
			return err
		case kind == 2:
			return driver.ErrBadConn
		}
		return mysql.ErrInvalidConn
	}
	h.wire.set(func(w *wire) {
		if after && !(kind == 1 && h.proxy != nil) {
			w.after = strike
		} else {
			w.before = func(query string) error { return strike(query, nil) }
		}
	})
	return f
}

// snapshot lists all rows of this history.
func (h *history) snapshot() (lines []string, err error) {
	var orders []orderRow
	var ids []idgen.ID
	err = h.db.gorm.Where("voucher_id IN ?", h.vouchers).Find(&orders).Error
	for i := range orders {
		o := orders[i].order()
		ids = append(ids, o.ID)
		lines = append(lines, orderLine(o.ID, o.VoucherID, o.UserID, o.RequestID, o.Status, o.CloseReason, o.Version))
	}
	for _, id := range h.vouchers {
		v, e := h.voucher(id)
		err = errors.Join(err, e)
		lines = append(lines, voucherLine(id, v))
	}
	if len(ids) > 0 {
		var events []struct {
			BizID   idgen.ID
			Version int
			BizType service.EventType
		}
		e := h.db.gorm.Raw("SELECT biz_id, version, biz_type FROM outbox_event WHERE biz_id IN ?", ids).Scan(&events).Error
		for _, e := range events {
			lines = append(lines, eventLine(e.BizID, e.Version, e.BizType))
		}
		var payments []struct {
			PaymentID string
			OrderID   idgen.ID
			RefundDue bool
		}
		err = errors.Join(err, e, h.db.gorm.Raw("SELECT payment_id, order_id, refund_due FROM payment WHERE order_id IN ?", ids).Scan(&payments).Error)
		for _, p := range payments {
			if strings.Contains(p.PaymentID, " ") { // the shop's own
				p.PaymentID = "own of " + p.OrderID.String()
			}
			lines = append(lines, paymentLine(p.PaymentID, p.OrderID, p.RefundDue))
		}
	}
	slices.Sort(lines)
	return lines, err
}

// voucher reads a voucher. It waits if the sale is in its last millisecond.
func (h *history) voucher(id idgen.ID) (modelVoucher, error) {
	for {
		terms, now, err := readTerms(h.db.gorm, h.db.dialect, id)
		left := terms.EndsAt.Sub(now)
		if err == nil && left > 0 && left < time.Second {
			continue
		}
		return modelVoucher{terms.Total, terms.Stock, terms.Placed, terms.UserLimit, left <= 0}, err
	}
}
