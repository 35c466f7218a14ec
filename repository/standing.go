package repository

import (
	"context"
	"strings"

	"gorm.io/gorm"

	"seckill/service"
	"seckill/service/idgen"
)

// decideStanding gives their verdict to candidates whose order stands already, or whose user holds as many live orders
// as the limit allows. It returns the others with the slot that each can try to take, and apart from them those that
// have to wait for a neighbour in the same batch.
func (r *round) decideStanding(ctx context.Context, pending []candidate, limit int) (fresh, deferred []candidate, err error) {
	standing, err := findStanding(r.db.session(ctx), r.voucherID, pending, r.lookFirst)
	if err != nil {
		return nil, nil, err
	}
	wanted := map[requestKey]bool{}
	for _, c := range pending {
		key := keyOf(&c.Order)
		if row := standing.answer(key, limit); row != nil {
			order := row.order()
			c.Err = service.Verdict(&order, key.request, r.voucherID)
			if c.Replayed = c.Err == nil; c.Replayed {
				c.Order = order
			}
			continue
		}
		slot, free := standing.freeSlot(key.user, limit)
		if wanted[key] || !free {
			deferred = append(deferred, c)
			continue
		}
		wanted[key] = true
		standing.reserve(key.user, slot)
		c.slot = slot
		fresh = append(fresh, c)
	}
	return fresh, deferred, nil
}

// requestKey is what makes two requests the same.
type requestKey struct {
	user    service.UserID
	request string
}

func keyOf(o *service.Order) requestKey { return requestKey{o.UserID, o.RequestID} }

// standingOrders are the orders that decide over a set of requests.
type standingOrders struct {
	byRequest map[requestKey]*orderRow
	live      map[service.UserID][]*orderRow // of the voucher, newest first
	slots     map[service.UserID]map[int]bool
}

// findStanding reads the users' live orders of the voucher, and the orders of the same requests. Both go by an index.
// refused tells that an index may have refused them before.
func findStanding(tx *gorm.DB, voucherID idgen.ID, pending []candidate, refused bool) (*standingOrders, error) {
	s := &standingOrders{
		byRequest: map[requestKey]*orderRow{},
		live:      map[service.UserID][]*orderRow{},
		slots:     map[service.UserID]map[int]bool{},
	}
	users := make([]int64, len(pending))
	for i, c := range pending {
		users[i] = int64(c.Order.UserID)
	}
	var live []orderRow
	err := tx.Where("voucher_id = ? AND user_id IN ? AND slot IS NOT NULL", int64(voucherID), users).Order("id DESC").Find(&live).Error
	if err != nil {
		return nil, err
	}
	for i := range live {
		row := &live[i]
		user := service.UserID(row.UserID)
		s.live[user] = append(s.live[user], row)
		s.reserve(user, *row.Slot)
	}
	same, err := findRequests(tx, pending, refused)
	for i := range same {
		o := same[i].order()
		s.byRequest[keyOf(&o)] = &same[i]
	}
	return s, err
}

// findRequests reads the orders that were placed with the same idempotency keys. An order that goes by its own id has
// none that was used before, unless its user has guessed the id: it is looked for only once an index has refused it.
func findRequests(tx *gorm.DB, pending []candidate, refused bool) (rows []orderRow, err error) {
	var where strings.Builder
	var args []any
	for _, c := range pending {
		if !refused && c.Order.RequestID == c.Order.ID.String() {
			continue
		}
		if where.Len() > 0 {
			where.WriteString(" OR ")
		}
		where.WriteString("(user_id = ? AND request_id = ?)")
		args = append(args, int64(c.Order.UserID), c.Order.RequestID)
	}
	if where.Len() == 0 {
		return nil, nil
	}
	err = tx.Where(where.String(), args...).Find(&rows).Error
	return rows, err
}

// answer is the order that answers a request, or nil.
func (s *standingOrders) answer(key requestKey, limit int) *orderRow {
	if row := s.byRequest[key]; row != nil {
		return row
	}
	if live := s.live[key.user]; len(live) >= limit {
		return live[0]
	}
	return nil
}

// freeSlot is the lowest slot that nobody holds.
func (s *standingOrders) freeSlot(user service.UserID, limit int) (slot int, free bool) {
	for slot := range limit {
		if !s.slots[user][slot] {
			return slot, true
		}
	}
	return 0, false
}

func (s *standingOrders) reserve(user service.UserID, slot int) {
	if s.slots[user] == nil {
		s.slots[user] = map[int]bool{}
	}
	s.slots[user][slot] = true
}

// Standing implements service.OrderStore.
func (s *Orders) Standing(ctx context.Context, voucherID idgen.ID, user service.UserID, requestID string, limit int) (service.Order, error) {
	asked := service.Placement{Order: service.Order{VoucherID: voucherID, UserID: user, RequestID: requestID}}
	var found *orderRow
	err := s.db.read(ctx, func(tx *gorm.DB) error {
		standing, err := findStanding(tx, voucherID, []candidate{{Placement: &asked}}, false)
		if err == nil {
			found = standing.answer(keyOf(&asked.Order), limit)
		}
		return err
	})
	switch {
	case err != nil:
		return service.Order{}, err
	case found == nil:
		return service.Order{}, service.ErrNotFound
	}
	return found.order(), nil
}
