package board

import (
	"cmp"
	"context"
	"maps"
	"math"
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
	activeVouchers = 16              // remembered
	cooling        = 3 * time.Second // in which the heat of a sale halves
)

// sales remembers how hot the sale of each voucher is here: how many orders were placed, those of long ago counting less.
type sales struct {
	mu  sync.Mutex
	hot map[idgen.ID]heat
}

// heat is a value as of a moment.
type heat struct {
	value float64
	at    time.Time
}

func (h heat) now(at time.Time) float64 {
	return h.value * math.Exp2(-float64(at.Sub(h.at))/float64(cooling))
}

func (s *sales) sold(id idgen.ID, orders int, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hot == nil {
		s.hot = map[idgen.ID]heat{}
	}
	s.hot[id] = heat{s.hot[id].now(at) + float64(orders), at}
	if len(s.hot) > activeVouchers {
		coldest := slices.MinFunc(slices.Collect(maps.Keys(s.hot)), func(a, b idgen.ID) int {
			return cmp.Compare(s.hot[a].now(at), s.hot[b].now(at))
		})
		delete(s.hot, coldest)
	}
}

// heats is how hot each is now.
func (s *sales) heats(at time.Time) map[idgen.ID]float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	heats := make(map[idgen.ID]float64, len(s.hot))
	for id, h := range s.hot {
		heats[id] = h.now(at)
	}
	return heats
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
	orders := 0
	for _, p := range batch {
		if p.Err == nil && !p.Replayed {
			orders++
		}
	}
	if orders > 0 {
		w.meter.sales.sold(voucherID, orders, time.Now())
	}
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
	hot := s.meter.sales.heats(time.Now())
	for _, v := range found {
		delete(hot, v.ID)
	}
	hottest := slices.SortedFunc(maps.Keys(hot), func(a, b idgen.ID) int { return cmp.Compare(hot[b], hot[a]) })
	for _, id := range hottest[:min(len(hottest), shownVouchers-1)] {
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
	hot := s.meter.sales.heats(now)
	s.notice(now)
	s.refocus(hot)
	slices.SortFunc(s.found, func(a, b service.Voucher) int {
		return cmp.Or(
			-cmp.Compare(flag(a.ID == s.focus), flag(b.ID == s.focus)),
			cmp.Compare(hot[b.ID], hot[a.ID]),
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

// refocus chooses the voucher that the board is about: the one that sells best, unless another one that was in focus sells
// nearly as well; else one that is on sale; else the newest.
func (s *shelf) refocus(hot map[idgen.ID]float64) {
	best := s.focus
	for id, h := range hot {
		if h > 2*hot[best] || best != s.focus && h > hot[best] {
			best = id
		}
	}
	if hot[best] == 0 {
		best = 0
		for _, v := range s.found {
			if best == 0 || stateOf(&v) == onSale && v.ID > best {
				best = v.ID
			}
		}
	}
	s.focus = best
}
