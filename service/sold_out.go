package service

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// soldOutGate refuses buyers of a voucher that is sold out, or whose sale has ended, at almost no cost, and never wrongly.
//
// A refusal rests on a read of the stock row that began after the request arrived. Requests share these reads: all that
// arrive during one wait for the next. So no refusal is stale, each instance sells a returned unit at once, and the
// database serves at most about 3,000 small reads per second for each voucher and instance, instead of one per request.
//
// A user who has an order must not hear "sold out" when the request is repeated. So the gate keeps the voucher's buyers,
// and knows by the counter of placed orders whether that list is complete.
type soldOutGate struct {
	closed atomic.Bool // the voucher was sold out when it was last seen
	read   func(known *buyers) (*stockView, error)

	mu      sync.Mutex
	next    *sharedRead[*stockView] // requests that arrive join it; nil: none is needed yet
	running bool
	known   *buyers // nil until needed

	// Only read uses these; it never runs twice at the same time.
	listedAt time.Time     // when the list of buyers was last read
	listTook time.Duration // how long that took
}

// readPace is the least time between the starts of two reads of one gate: it bounds the load of the database.
const readPace = 300 * time.Microsecond

// stockView is the result of a read.
type stockView struct {
	terms  Terms
	now    time.Time
	buyers *buyers // nil if the list is not complete
}

// refusal returns why no one can buy at the moment of the view, or nil.
func (w *stockView) refusal(v *Voucher) error {
	if w.now.Before(w.terms.StartsAt) || !w.now.Before(w.terms.EndsAt) {
		current := *v // only here, to save the allocation for the many "sold out"
		current.Terms, current.ServerTime = w.terms, w.now
		return current.CheckOpen(w.now)
	}
	if w.terms.Stock > 0 {
		return nil
	}
	return ErrSoldOut
}

// mayHaveOrdered returns false only if the user certainly has no order of this voucher.
func (w *stockView) mayHaveOrdered(user UserID) bool { return w.buyers == nil || w.buyers.has(user) }

// check waits for a read that begins after the call.
func (g *soldOutGate) check(ctx context.Context) (*stockView, error) {
	g.mu.Lock()
	if g.next == nil {
		g.next = newSharedRead[*stockView]()
	}
	r := g.next
	if !g.running {
		g.running = true
		go g.run()
	}
	g.mu.Unlock()
	return r.wait(ctx)
}

// run reads until no request waits.
func (g *soldOutGate) run() {
	for {
		g.mu.Lock()
		r, known := g.next, g.known
		g.next = nil
		g.running = r != nil
		g.mu.Unlock()
		if r == nil {
			return
		}
		start := time.Now()
		r.run(func() (*stockView, error) { return g.read(known) })
		if r.err == nil {
			g.keep(r.value)
		}
		close(r.done)
		time.Sleep(readPace - time.Since(start))
	}
}

// keep stores what the next read can use, and opens the gate if units are back.
func (g *soldOutGate) keep(w *stockView) {
	if w.terms.Stock > 0 && w.now.Before(w.terms.EndsAt) {
		g.closed.Store(false)
	}
	if w.buyers != nil {
		g.mu.Lock()
		g.known = w.buyers
		g.mu.Unlock()
	}
}

// addBuyer adds a buyer of this instance to the list, if there is one.
func (g *soldOutGate) addBuyer(user UserID) {
	g.mu.Lock()
	known := g.known
	g.mu.Unlock()
	if known != nil {
		known.add(user)
	}
}

// worthListing reports whether the list of buyers should be read again now. Reading lists takes less than a tenth of the
// time, also while single units come back and other instances sell them. Without a list, each request looks for its own
// order.
func (g *soldOutGate) worthListing() bool { return time.Since(g.listedAt) >= 10*g.listTook }

// readStock reads the stock row, and the list of buyers if refusals need it and the known list is not complete.
func (s *saleState) readStock(known *buyers) (*stockView, error) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	covered := known.covered() // before the read: these orders were committed before it
	terms, now, err := s.vouchers.Terms(ctx, s.id)
	if err != nil {
		return nil, err
	}
	w := &stockView{terms: terms, now: now}
	open := terms.Stock > 0 && now.Before(terms.EndsAt)
	switch {
	case covered == terms.Placed:
		w.buyers = known
	case !open && s.soldOut.worthListing():
		w.buyers = s.list(ctx)
	}
	return w, nil
}

// list reads the buyers. The list is complete as of a moment after the call, so also for a view that was read before it.
// If the read fails, list returns nil, and the view is valid without it.
func (s *saleState) list(ctx context.Context) *buyers {
	start := time.Now()
	users, placed, err := s.orders.Buyers(ctx, s.id)
	s.soldOut.listedAt, s.soldOut.listTook = time.Now(), time.Since(start)
	if err != nil {
		return nil
	}
	return &buyers{sorted: users, placed: placed}
}

// buyers is the set of users who ever ordered a voucher.
type buyers struct {
	sorted []UserID // as read from the database

	mu     sync.RWMutex
	placed int64 // orders that sorted and added certainly cover
	added  map[UserID]struct{}
}

func (b *buyers) has(user UserID) bool {
	if _, found := slices.BinarySearch(b.sorted, user); found {
		return true
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	_, found := b.added[user]
	return found
}

// add counts an order only if its user was not in the set: if an order were counted twice, placed could equal
// Terms.Placed while a buyer is missing, and that buyer would get "sold out". A count that is too low costs a read, and is
// safe.
func (b *buyers) add(user UserID) {
	if b.has(user) {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.added == nil {
		b.added = make(map[UserID]struct{})
	}
	if _, found := b.added[user]; !found {
		b.added[user] = struct{}{}
		b.placed++
	}
}

// covered returns how many orders the set certainly covers, -1 if there is no set.
func (b *buyers) covered() int64 {
	if b == nil {
		return -1
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.placed
}
