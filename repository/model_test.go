package repository

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"seckill/service"
	"seckill/service/idgen"
)

// shopModel is the shop without a database, concurrency or failures: one request after the other, in plain maps. The
// database must give the same answers.
type shopModel struct {
	vouchers  map[idgen.ID]modelVoucher
	orders    map[idgen.ID]modelOrder
	payments  map[string]modelPayment
	restocked map[string]int64 // units, by request
}

type modelVoucher struct {
	total, stock, placed int64
	limit                int
	ended                bool
}

type modelOrder struct {
	voucher idgen.ID
	user    service.UserID
	key     string
	status  service.Status
	reason  service.CloseReason
	overdue bool
	events  []service.EventType // one a version
}

func (o modelOrder) live() bool { return o.status != service.Closed }

type modelPayment struct {
	order  idgen.ID
	refund bool
}

func newModel() *shopModel {
	return &shopModel{
		vouchers: map[idgen.ID]modelVoucher{}, orders: map[idgen.ID]modelOrder{},
		payments: map[string]modelPayment{}, restocked: map[string]int64{},
	}
}

func (m *shopModel) clone() *shopModel {
	c := &shopModel{
		vouchers: maps.Clone(m.vouchers), orders: maps.Clone(m.orders),
		payments: maps.Clone(m.payments), restocked: maps.Clone(m.restocked),
	}
	for id, o := range c.orders {
		o.events = slices.Clone(o.events)
		c.orders[id] = o
	}
	return c
}

// place returns the verdict, and the order if the answer has one.
func (m *shopModel) place(o *service.Order) (verdict string, answer idgen.ID) {
	live := 0
	for _, id := range slices.Sorted(maps.Keys(m.orders)) {
		known := m.orders[id]
		switch {
		case known.user != o.UserID:
		case known.key == o.RequestID && known.voucher != o.VoucherID:
			return string(service.CodeKeyReused), 0
		case known.key == o.RequestID:
			return "replayed", id
		case known.voucher == o.VoucherID && known.live():
			live++
			answer = id
		}
	}
	v := m.vouchers[o.VoucherID]
	switch {
	case live >= v.limit:
		return string(service.CodeAlreadyOrdered), answer
	case v.ended:
		return string(service.CodeEnded), 0
	case v.stock == 0:
		return string(service.CodeSoldOut), 0
	}
	v.stock--
	v.placed++
	m.vouchers[o.VoucherID] = v
	m.orders[o.ID] = modelOrder{
		voucher: o.VoucherID, user: o.UserID, key: o.RequestID, status: service.Pending,
		events: []service.EventType{service.OrderCreated},
	}
	return "placed", o.ID
}

// to changes the state of an order and adds the event; closing returns the unit.
func (m *shopModel) to(id idgen.ID, status service.Status, reason service.CloseReason, event service.EventType) {
	o := m.orders[id]
	if status == service.Closed && o.live() {
		v := m.vouchers[o.voucher]
		v.stock++
		m.vouchers[o.voucher] = v
	}
	o.status, o.reason, o.events = status, reason, append(o.events, event)
	m.orders[id] = o
}

func (m *shopModel) cancel(id idgen.ID, user service.UserID) service.Code {
	o, found := m.orders[id]
	switch {
	case !found || o.user != user:
		return service.CodeNotFound
	case o.status == service.Paid:
		return service.CodeOrderPaid
	case o.reason == service.Expired:
		return service.CodeOrderClosed
	case o.status == service.Pending:
		m.to(id, service.Closed, service.Cancelled, service.OrderCancelled)
	}
	return ""
}

func (m *shopModel) pay(id idgen.ID, user service.UserID, payment string) service.Code {
	o, found := m.orders[id]
	if !found || o.user != user {
		return service.CodeNotFound
	}
	known, told := m.payments[payment]
	moved := payment != ""
	if !moved {
		payment = "own of " + id.String()
	}
	switch {
	case moved && told && known.order != id:
		return service.CodeInvalid
	case moved && told && known.refund:
		return service.CodeRefundDue
	case moved && told:
	case o.status == service.Pending:
		m.to(id, service.Paid, 0, service.OrderPaid)
		m.payments[payment] = modelPayment{id, false}
	case moved:
		m.to(id, o.status, o.reason, service.OrderRefundDue)
		m.payments[payment] = modelPayment{id, true}
		return service.CodeRefundDue
	case o.status == service.Closed:
		return service.CodeOrderClosed
	}
	return ""
}

// expire returns how many units came back.
func (m *shopModel) expire(ids []idgen.ID) (units int) {
	for _, id := range ids {
		if o := m.orders[id]; o.status == service.Pending && o.overdue {
			m.to(id, service.Closed, service.Expired, service.OrderExpired)
			units++
		}
	}
	return units
}

// addStock returns the refusal of a request that was used for other units.
func (m *shopModel) addStock(id idgen.ID, units int64, request string) service.Code {
	key := id.String() + request
	if before, known := m.restocked[key]; known {
		if before != units {
			return service.CodeKeyReused
		}
		return ""
	}
	m.restocked[key] = units
	v := m.vouchers[id]
	v.stock += units
	v.total += units
	m.vouchers[id] = v
	return ""
}

// snapshot lists everything, for comparison with the database.
func (m *shopModel) snapshot() []string {
	var lines []string
	for id, v := range m.vouchers {
		lines = append(lines, voucherLine(id, v))
	}
	for id, o := range m.orders {
		lines = append(lines, orderLine(id, o.voucher, o.user, o.key, o.status, o.reason, len(o.events)))
		for i, e := range o.events {
			lines = append(lines, eventLine(id, i+1, e))
		}
	}
	for id, p := range m.payments {
		lines = append(lines, paymentLine(id, p.order, p.refund))
	}
	slices.Sort(lines)
	return lines
}

func voucherLine(id idgen.ID, v modelVoucher) string {
	return fmt.Sprintf("voucher %s: total %d, stock %d, placed %d, limit %d, ended %v", id, v.total, v.stock, v.placed, v.limit, v.ended)
}

func orderLine(id, voucher idgen.ID, user service.UserID, key string, s service.Status, r service.CloseReason, version int) string {
	return fmt.Sprintf("order %s: voucher %s, user %d, key %s, %s %s, version %d", id, voucher, user, key, s, r, version)
}

func eventLine(order idgen.ID, version int, kind service.EventType) string {
	return fmt.Sprintf("order %s, event %d: %s", order, version, kind)
}

func paymentLine(id string, order idgen.ID, refund bool) string {
	return fmt.Sprintf("payment %s: order %s, refund %v", id, order, refund)
}

// difference names the lines that only one of two snapshots has.
func difference(got, want []string) string {
	var out strings.Builder
	for _, line := range got {
		if _, found := slices.BinarySearch(want, line); !found {
			fmt.Fprintf(&out, "\n  in the database only: %s", line)
		}
	}
	for _, line := range want {
		if _, found := slices.BinarySearch(got, line); !found {
			fmt.Fprintf(&out, "\n  in the model only:    %s", line)
		}
	}
	return out.String()
}
