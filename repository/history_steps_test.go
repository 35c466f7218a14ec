package repository

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"seckill/service"
	"seckill/service/idgen"
)

// pick returns a random element.
func pick[T any](h *history, all []T) T { return all[h.rng.IntN(len(all))] }

// next draws the next request.
func (h *history) next() action {
	switch n := h.rng.IntN(20); {
	case n < 8:
		return h.place(h.newBatch())
	case n < 10 && h.last != nil:
		return h.place(h.again(h.last))
	case n < 12 && len(h.model.orders) > 0:
		return h.cancel()
	case n < 14 && len(h.model.orders) > 0:
		return h.pay()
	case n < 16 && len(h.model.orders) > 0:
		return h.expire()
	case n < 18:
		return h.addStock()
	case n == 18:
		return h.end()
	}
	return h.raise()
}

// newBatch asks for units for some users, some of them with a key that may have been used before.
func (h *history) newBatch() (batch []*service.Placement) {
	voucher := pick(h, h.vouchers)
	for range 1 + h.rng.IntN(7) {
		key := ""
		if h.rng.IntN(2) == 0 {
			key = fmt.Sprint("key-", h.rng.IntN(4))
		}
		batch = append(batch, placement(voucher, pick(h, h.users), key))
	}
	return batch
}

// again is a batch of the same requests; one without a key is a new one.
func (h *history) again(before []*service.Placement) (batch []*service.Placement) {
	for _, p := range before {
		key := p.Order.RequestID
		if !strings.HasPrefix(key, "key-") {
			key = ""
		}
		batch = append(batch, placement(p.Order.VoucherID, p.Order.UserID, key))
	}
	return batch
}

func (h *history) place(batch []*service.Placement) action {
	h.last = batch
	asked := make([]service.Order, len(batch))
	name := fmt.Sprint("place of voucher ", batch[0].Order.VoucherID, ":")
	for i, p := range batch {
		asked[i] = p.Order
		name += fmt.Sprintf(" %d/%s", p.Order.UserID, p.Order.RequestID)
	}
	return action{
		name: name, batch: batch, asked: asked,
		ask: func(ctx context.Context) string {
			NewOrders(h.db).Place(ctx, batch[0].Order.VoucherID, batch)
			if h.spoil != nil {
				h.spoil(batch)
			}
			return answers(batch)
		},
		model: func(m *shopModel) (all string) {
			for i := range asked {
				verdict, id := m.place(&asked[i])
				all += fmt.Sprint(verdict, " ", id, "; ")
			}
			return all
		},
	}
}

// answers lists verdicts, each with the order that it names.
func answers(batch []*service.Placement) (all string) {
	for i, verdict := range verdicts(batch) {
		p := batch[i]
		id := idgen.ID(0)
		if p.Err == nil {
			id = p.Order.ID
		} else if e, ok := p.Err.(*service.Error); ok && e.Order != nil {
			id = e.Order.ID
		}
		all += fmt.Sprint(verdict, " ", id, "; ")
	}
	return all
}

// anOrder picks an order and the user of a request for it, mostly its owner.
func (h *history) anOrder() (idgen.ID, service.UserID) {
	id := pick(h, slices.Sorted(maps.Keys(h.model.orders)))
	user := h.model.orders[id].user
	if h.rng.IntN(6) == 0 {
		user = pick(h, h.users)
	}
	return id, user
}

func (h *history) cancel() action {
	id, user := h.anOrder()
	event := nextID()
	return action{
		name: fmt.Sprintf("cancel of %s by %d", id, user),
		ask: func(ctx context.Context) string {
			_, err := NewOrders(h.db).Cancel(ctx, id, user, event)
			return string(service.CodeOf(err))
		},
		model: func(m *shopModel) string { return string(m.cancel(id, user)) },
	}
}

func (h *history) pay() action {
	id, user := h.anOrder()
	event := nextID()
	payment := ""
	if h.rng.IntN(3) > 0 {
		payment = fmt.Sprintf("p-%s-%d", h.vouchers[0], h.rng.IntN(5))
	}
	return action{
		name: fmt.Sprintf("payment %q of %s by %d", payment, id, user),
		ask: func(ctx context.Context) string {
			_, err := NewOrders(h.db).Pay(ctx, id, service.Payment{ID: payment, UserID: user}, event)
			return string(service.CodeOf(err))
		},
		model: func(m *shopModel) string { return string(m.pay(id, user, payment)) },
	}
}

// expire makes some pending orders overdue, and expires these and others.
func (h *history) expire() action {
	var ids, events, late []idgen.ID
	for _, id := range slices.Sorted(maps.Keys(h.model.orders)) {
		if h.rng.IntN(3) == 0 {
			continue
		}
		ids, events = append(ids, id), append(events, nextID())
		if o := h.model.orders[id]; o.status == service.Pending && h.rng.IntN(2) == 0 {
			o.overdue = true
			h.model.orders[id] = o
			late = append(late, id)
		}
	}
	if len(late) > 0 {
		makeOverdue(h.t, h.db, late...)
	}
	if len(ids) == 0 {
		ids, events = []idgen.ID{nextID()}, []idgen.ID{nextID()}
	}
	return action{
		name: fmt.Sprintf("expiry of %v, overdue now: %v", ids, late),
		ask: func(ctx context.Context) string {
			returned, err := NewOrders(h.db).Expire(ctx, ids, events)
			if err != nil {
				return string(service.CodeOf(err))
			}
			units := int64(0)
			for _, n := range returned {
				units += n
			}
			return fmt.Sprint(units, " units")
		},
		model: func(m *shopModel) string { return fmt.Sprint(m.expire(ids), " units") },
	}
}

// change is an action of an admin, which is answered by success or a refusal.
func (h *history) change(name string, ask func(ctx context.Context, v *Vouchers) error, model func(m *shopModel) service.Code) action {
	return action{
		name:  name,
		ask:   func(ctx context.Context) string { return string(service.CodeOf(ask(ctx, NewVouchers(h.db)))) },
		model: func(m *shopModel) string { return string(model(m)) },
	}
}

func (h *history) addStock() action {
	id, units, request := pick(h, h.vouchers), 1+h.rng.Int64N(3), fmt.Sprint("r", h.rng.IntN(3))
	return h.change(fmt.Sprintf("%d more of voucher %s by %s", units, id, request),
		func(ctx context.Context, v *Vouchers) error { return v.AddStock(ctx, id, units, request) },
		func(m *shopModel) service.Code { return m.addStock(id, units, request) })
}

// end ends a sale, or starts it again.
func (h *history) end() action {
	id := pick(h, h.vouchers)
	again := h.model.vouchers[id].ended
	return h.change(fmt.Sprintf("end of voucher %s, again %v", id, again),
		func(ctx context.Context, v *Vouchers) error {
			if again {
				end := time.Now().Add(time.Hour)
				return v.Change(ctx, id, service.VoucherChange{EndsAt: &end})
			}
			return v.End(ctx, id)
		},
		func(m *shopModel) service.Code {
			v := m.vouchers[id]
			v.ended = !again
			m.vouchers[id] = v
			return ""
		})
}

func (h *history) raise() action {
	id := pick(h, h.vouchers)
	limit := min(h.model.vouchers[id].limit+h.rng.IntN(2), 5)
	return h.change(fmt.Sprintf("limit of voucher %s is %d", id, limit),
		func(ctx context.Context, v *Vouchers) error {
			return v.Change(ctx, id, service.VoucherChange{UserLimit: &limit})
		},
		func(m *shopModel) service.Code {
			v := m.vouchers[id]
			v.limit = limit
			m.vouchers[id] = v
			return ""
		})
}
