package board

import (
	"time"

	"seckill/service"
	"seckill/service/idgen"
)

// saleState is what the line of events has said about a voucher.
type saleState struct {
	state string
	since time.Time
}

// soldOutPause keeps single units that come back and are sold at once from filling the line.
const soldOutPause = 3 * time.Second

// notice puts on the line what has happened to the vouchers since the last reading. What was so when the board began is
// no event.
func (s *shelf) notice(now time.Time) {
	states := make(map[idgen.ID]saleState, len(s.found))
	newest := s.newest
	for i := range s.found {
		v := &s.found[i]
		newest = max(newest, v.ID)
		before, known := s.states[v.ID]
		after := saleState{stateOf(v), now}
		switch {
		case s.states == nil:
		case !known && v.ID <= s.newest: // an older one that is being sold again
		case !known:
			s.tell(v, saleState{state: coming}, after)
		case before.state == after.state:
			after = before
		case after.state != over && before.state != coming && now.Sub(before.since) < soldOutPause:
			after = before // until the next reading
		default:
			s.tell(v, before, after)
		}
		states[v.ID] = after
	}
	s.states, s.newest = states, newest
}

// tell puts the way from one state to another on the line.
func (s *shelf) tell(v *service.Voucher, before, after saleState) {
	local := func(t time.Time) time.Time { return after.since.Add(t.Sub(v.ServerTime)) }
	if before.state == coming && after.state != coming {
		opened := local(v.StartsAt)
		if before.since.IsZero() || opened.After(after.since) || opened.Before(before.since) {
			opened = after.since // a new voucher may say that it opened long ago
		}
		s.meter.line.add(opened, SaleOpened, v.Title, v.Total)
	}
	switch {
	case after.state == none:
		s.meter.line.add(after.since, SoldOut, v.Title, v.Placed)
	case after.state == onSale && before.state == none:
		s.meter.line.add(after.since, OnSaleAgain, v.Title, v.Stock)
	case after.state == over:
		s.meter.line.add(after.since, SaleEnded, v.Title, 0)
	}
}
