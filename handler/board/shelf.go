package board

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"seckill/service"
	"seckill/service/idgen"
)

// voucherView is a voucher on the board.
type voucherView struct {
	ID       idgen.ID `json:"id"`
	Title    string   `json:"title"`
	Total    int64    `json:"total"`
	Stock    int64    `json:"stock"`
	Placed   int64    `json:"placed"` // orders ever, closed ones included
	State    string   `json:"state"`  // as of the reading
	StartsAt string   `json:"starts_at"`
	EndsAt   string   `json:"ends_at"`
}

// The states of a sale.
const (
	coming = "coming"
	onSale = "on-sale"
	none   = "sold-out"
	over   = "ended"
)

func stateOf(v *service.Voucher) string {
	switch {
	case v.ServerTime.Before(v.StartsAt):
		return coming
	case !v.ServerTime.Before(v.EndsAt):
		return over
	case v.Stock <= 0:
		return none
	}
	return onSale
}

const (
	shownVouchers  = 6
	activeVouchers = 16               // remembered
	focusTime      = 10 * time.Second // how long a voucher that nobody buys stays in focus while another one is bought
)

// sales remembers which vouchers were sold here of late.
type sales struct {
	mu   sync.Mutex
	last map[idgen.ID]time.Time
}

func (s *sales) sold(id idgen.ID, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		s.last = map[idgen.ID]time.Time{}
	}
	s.last[id] = at
	if len(s.last) > activeVouchers {
		oldest := slices.MinFunc(slices.Collect(maps.Keys(s.last)), func(a, b idgen.ID) int { return s.last[a].Compare(s.last[b]) })
		delete(s.last, oldest)
	}
}

// of is when a voucher was sold last; zero if it was not.
func (s *sales) of() map[idgen.ID]time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.last)
}

// WatchOrders returns a store that is inner, and tells the meter which vouchers are sold.
func (m *Meter) WatchOrders(inner service.OrderStore) service.OrderStore {
	return watchedOrders{inner, m}
}

type watchedOrders struct {
	service.OrderStore
	meter *Meter
}

// Place implements service.OrderStore.
func (w watchedOrders) Place(ctx context.Context, voucherID idgen.ID, batch []*service.Placement) {
	w.OrderStore.Place(ctx, voucherID, batch)
	w.meter.sales.sold(voucherID, time.Now())
}

// shelf is the vouchers on the board: those that are sold here, and the newest ones.
type shelf struct {
	meter    *Meter
	vouchers service.VoucherStore

	found  []service.Voucher
	focus  idgen.ID
	states map[idgen.ID]saleState // of the vouchers that were found last; nil before the first reading
	newest idgen.ID
}

// read reads the vouchers to show.
func (s *shelf) read(ctx context.Context) error {
	found, err := s.vouchers.Vouchers(ctx, 0, shownVouchers)
	if err != nil {
		return err
	}
	active := s.meter.sales.of()
	for _, v := range found {
		delete(active, v.ID)
	}
	recent := slices.SortedFunc(maps.Keys(active), func(a, b idgen.ID) int { return active[b].Compare(active[a]) })
	for _, id := range recent[:min(len(recent), shownVouchers-1)] {
		v, err := s.vouchers.Voucher(ctx, id)
		if err != nil {
			return err
		}
		found = append(found, v)
	}
	s.found = found
	return nil
}

// arrange puts the vouchers into the order in which they are shown, and what has happened to them on the line of events.
func (s *shelf) arrange(now time.Time) []voucherView {
	sold := s.meter.sales.of()
	s.notice(now)
	s.refocus(sold)
	slices.SortFunc(s.found, func(a, b service.Voucher) int {
		return cmp.Or(
			-cmp.Compare(flag(a.ID == s.focus), flag(b.ID == s.focus)),
			sold[b.ID].Compare(sold[a.ID]),
			cmp.Compare(b.ID, a.ID),
		)
	})
	shown := s.found[:min(len(s.found), shownVouchers)]
	views := make([]voucherView, len(shown))
	for i, v := range shown {
		views[i] = voucherView{
			ID: v.ID, Title: v.Title, Total: v.Total, Stock: v.Stock, Placed: v.Placed, State: stateOf(&v),
			StartsAt: v.StartsAt.UTC().Format(time.RFC3339Nano), EndsAt: v.EndsAt.UTC().Format(time.RFC3339Nano),
		}
	}
	return views
}

// refocus chooses the voucher that the board is about: one that is being bought, and the same one for as long as it is;
// else one that is on sale; else the newest.
func (s *shelf) refocus(sold map[idgen.ID]time.Time) {
	best := s.focus
	for id, at := range sold {
		if at.Sub(sold[best]) > focusTime {
			best = id
		}
	}
	if sold[best].IsZero() {
		best = 0
		for _, v := range s.found {
			if best == 0 || stateOf(&v) == onSale && v.ID > best {
				best = v.ID
			}
		}
	}
	s.focus = best
}
