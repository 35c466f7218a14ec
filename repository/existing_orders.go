package repository

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"gorm.io/gorm"

	"seckill/service"
	"seckill/service/idgen"
)

// answerFromExisting sets the result of the pending orders whose request was placed before, or whose user holds as many
// live orders as the limit allows. It returns the others: fresh ones with the slot to try, and those that wait for the
// outcome of a fresh one of the same user. refused: a unique index may have refused some of them.
func (s *Orders) answerFromExisting(ctx context.Context, voucherID idgen.ID, pending []*service.Placement, limit int, refused bool) (fresh, waiting []*service.Placement, err error) {
	existing, err := findExisting(s.db.session(ctx), voucherID, pending, refused)
	if err != nil {
		return nil, nil, err
	}
	wanted := map[requestKey]bool{}
	for _, p := range pending {
		key := keyOf(&p.Order)
		if found := existing.answer(key, limit); found != nil {
			p.Err = service.MatchRequest(found, key.request, voucherID)
			if p.Replayed = p.Err == nil; p.Replayed {
				p.Order = *found
			}
			continue
		}
		if slices.Contains(existing.ids, p.Order.ID) { // of another request
			p.Err = &service.Error{Code: service.CodeInternal, Message: "the order could not be written", Err: fmt.Errorf("order id %d was generated twice", p.Order.ID)}
			continue
		}
		slot, free := existing.freeSlot(key.user, limit)
		if wanted[key] || !free {
			waiting = append(waiting, p)
			continue
		}
		wanted[key] = true
		existing.reserve(key.user, slot)
		p.Slot = slot
		fresh = append(fresh, p)
	}
	return fresh, waiting, nil
}

// requestKey identifies a request.
type requestKey struct {
	user    service.UserID
	request string
}

func keyOf(o *service.Order) requestKey { return requestKey{o.UserID, o.RequestID} }

// existingOrders are the orders that decide a set of requests.
type existingOrders struct {
	byRequest map[requestKey]*service.Order
	live      map[service.UserID][]*service.Order // of the voucher, newest first
	slots     map[service.UserID]map[int]bool     // taken
	ids       []idgen.ID                          // of the set that exist
}

// findExisting reads the users' live orders of the voucher, and the orders of the same requests, by their indexes.
func findExisting(tx *gorm.DB, voucherID idgen.ID, pending []*service.Placement, refused bool) (*existingOrders, error) {
	e := &existingOrders{
		byRequest: map[requestKey]*service.Order{},
		live:      map[service.UserID][]*service.Order{},
		slots:     map[service.UserID]map[int]bool{},
	}
	users := make([]int64, len(pending))
	for i, p := range pending {
		users[i] = int64(p.Order.UserID)
	}
	var live []orderRow
	err := tx.Where("voucher_id = ? AND user_id IN ? AND slot IS NOT NULL", int64(voucherID), users).Order("id DESC").Find(&live).Error
	if err != nil {
		return nil, err
	}
	for _, row := range live {
		o := row.order()
		e.live[o.UserID] = append(e.live[o.UserID], &o)
		e.reserve(o.UserID, *row.Slot)
	}
	same, err := findRequests(tx, pending, refused)
	for _, row := range same {
		o := row.order()
		e.byRequest[keyOf(&o)] = &o
	}
	if err == nil && refused {
		err = tx.Model(&orderRow{}).Where("id IN ?", orderIDs(pending)).Pluck("id", &e.ids).Error
	}
	return e, err
}

// findRequests reads the orders with the same request ids. An order whose request id is its own id has no earlier one,
// unless its user has guessed the id: it is looked for only after an index has refused the new one.
func findRequests(tx *gorm.DB, pending []*service.Placement, refused bool) (rows []orderRow, err error) {
	var where []string
	var args []any
	for _, p := range pending {
		if refused || p.Order.RequestID != p.Order.ID.String() {
			where = append(where, "(user_id = ? AND request_id = ?)")
			args = append(args, int64(p.Order.UserID), p.Order.RequestID)
		}
	}
	if len(where) == 0 {
		return nil, nil
	}
	err = tx.Where(strings.Join(where, " OR "), args...).Find(&rows).Error
	return rows, err
}

// answer is the order that answers a request, or nil.
func (e *existingOrders) answer(key requestKey, limit int) *service.Order {
	if o := e.byRequest[key]; o != nil {
		return o
	}
	if live := e.live[key.user]; len(live) >= limit {
		return live[0]
	}
	return nil
}

// freeSlot is the lowest slot that the user has free.
func (e *existingOrders) freeSlot(user service.UserID, limit int) (slot int, free bool) {
	for slot := range limit {
		if !e.slots[user][slot] {
			return slot, true
		}
	}
	return 0, false
}

func (e *existingOrders) reserve(user service.UserID, slot int) {
	if e.slots[user] == nil {
		e.slots[user] = map[int]bool{}
	}
	e.slots[user][slot] = true
}

// ExistingOrder implements service.OrderStore.
func (s *Orders) ExistingOrder(ctx context.Context, voucherID idgen.ID, user service.UserID, requestID string, limit int) (order service.Order, err error) {
	asked := service.Placement{Order: service.Order{VoucherID: voucherID, UserID: user, RequestID: requestID}}
	err = s.db.read(ctx, func(tx *gorm.DB) error {
		existing, err := findExisting(tx, voucherID, []*service.Placement{&asked}, false)
		if err != nil {
			return err
		}
		found := existing.answer(keyOf(&asked.Order), limit)
		if found == nil {
			return service.ErrNotFound
		}
		order = *found
		return nil
	})
	return order, err
}
