package board

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"seckill/service"
	"seckill/service/idgen"
)

// VoucherLister lists vouchers, newest first.
type VoucherLister interface {
	Vouchers(ctx context.Context, before idgen.ID, limit int) ([]service.Voucher, error)
}

// voucherView is a voucher on the board.
type voucherView struct {
	ID       idgen.ID  `json:"id"`
	Title    string    `json:"title"`
	Total    int64     `json:"total"`
	Stock    int64     `json:"stock"`
	Placed   int64     `json:"placed"` // orders ever placed, closed ones included
	State    string    `json:"state"`  // as of the reading
	StartsAt time.Time `json:"starts_at"`
	EndsAt   time.Time `json:"ends_at"`
}

// The states of a sale.
const (
	stateComing  = "coming"
	stateOnSale  = "on-sale"
	stateSoldOut = "sold-out"
	stateEnded   = "ended"
)

func stateOf(v *service.Voucher) string {
	switch {
	case v.ServerTime.Before(v.StartsAt):
		return stateComing
	case !v.ServerTime.Before(v.EndsAt):
		return stateEnded
	case v.Stock <= 0:
		return stateSoldOut
	}
	return stateOnSale
}

const (
	shownVouchers = 6
	halfLife      = 3 * time.Second // in which the weight of an order in sale.demand halves
	// soldOutPause keeps single units that come back and are sold at once from filling the timeline.
	soldOutPause = 3 * time.Second
)

// vouchers follows the newest vouchers of the shop: which of them to show, and what happens to their sales.
type vouchers struct {
	lister VoucherLister
	events *timeline

	known  map[idgen.ID]sale // nil before the first reading
	readAt time.Time
	focus  idgen.ID
}

// sale is what is remembered of a voucher from one reading to the next.
type sale struct {
	state  string
	since  time.Time
	placed int64
	demand float64 // recently placed orders; older ones count less
}

// read returns the vouchers to show, the one in focus first. If it fails, it returns what was shown before.
func (vs *vouchers) read(ctx context.Context, before []voucherView) ([]voucherView, error) {
	listed, err := vs.lister.Vouchers(ctx, 0, service.MaxPage)
	if err != nil {
		return before, err
	}
	vs.follow(listed, time.Now())
	vs.sort(listed)
	views := []voucherView{}
	for _, v := range listed[:min(len(listed), shownVouchers)] {
		views = append(views, voucherView{v.ID, v.Title, v.Total, v.Stock, v.Placed, stateOf(&v), v.StartsAt.UTC(), v.EndsAt.UTC()})
	}
	return views, nil
}

// sort puts the vouchers in most demand first, those on sale and the newest ones before others. The one in focus stays
// there until another is in twice the demand, so that the board does not waver between two.
func (vs *vouchers) sort(listed []service.Voucher) {
	demand := func(v *service.Voucher) float64 {
		if v.ID == vs.focus {
			return 2 * vs.known[v.ID].demand
		}
		return vs.known[v.ID].demand
	}
	slices.SortFunc(listed, func(a, b service.Voucher) int {
		return cmp.Or(
			cmp.Compare(demand(&b), demand(&a)),
			cmp.Compare(flag(stateOf(&b) == stateOnSale), flag(stateOf(&a) == stateOnSale)),
			cmp.Compare(b.ID, a.ID),
		)
	})
	if len(listed) > 0 {
		vs.focus = listed[0].ID
	}
}

// follow compares the vouchers with the last reading. The first reading adds no events.
func (vs *vouchers) follow(listed []service.Voucher, now time.Time) {
	decay := math.Exp2(-float64(now.Sub(vs.readAt)) / float64(halfLife))
	known := make(map[idgen.ID]sale, len(listed))
	for i := range listed {
		v := &listed[i]
		before, found := vs.known[v.ID]
		after := sale{stateOf(v), now, v.Placed, before.demand*decay + float64(v.Placed-before.placed)}
		switch {
		case vs.known == nil:
			after.demand = 0
		case !found:
			vs.addEvents(v, sale{state: stateComing}, after)
		case before.state == after.state:
			after.since = before.since
		case after.state != stateEnded && before.state != stateComing && now.Sub(before.since) < soldOutPause:
			after.state, after.since = before.state, before.since // until a later reading
		default:
			vs.addEvents(v, before, after)
		}
		known[v.ID] = after
	}
	vs.known, vs.readAt = known, now
}

// addEvents adds what leads from one state of a sale to another to the timeline.
func (vs *vouchers) addEvents(v *service.Voucher, before, after sale) {
	add := func(at time.Time, kind Kind, count int64) {
		vs.events.put(Event{At: vs.events.since(at), Kind: kind, What: v.Title, Count: count})
	}
	if before.state == stateComing && after.state != stateComing {
		opened := after.since.Add(v.StartsAt.Sub(v.ServerTime)) // on this instance's clock
		if before.since.IsZero() || opened.After(after.since) || opened.Before(before.since) {
			opened = after.since // a new voucher may have a start long ago
		}
		add(opened, SaleOpened, v.Total)
	}
	switch {
	case after.state == stateSoldOut:
		add(after.since, SoldOut, v.Placed)
	case after.state == stateOnSale && before.state == stateSoldOut:
		add(after.since, OnSaleAgain, v.Stock)
	case after.state == stateEnded:
		add(after.since, SaleEnded, 0)
	}
}
