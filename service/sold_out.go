package service

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// latch refuses buyers of a voucher that is sold out (or over) at next to no cost, and never wrongly.
//
// A refusal rests on a read of the stock row that began after the request came in. Requests share such reads: all that
// arrive while one is under way wait for the next. So a refusal is never stale, a unit that comes back is sold at once
// on every instance, and the database sees some three thousand small reads a second at most, of each instance, instead of every request.
//
// Somebody who holds an order must not be told "sold out" when asking again after a lost answer. So the latch keeps the
// voucher's buyers, and knows by the counter of placed orders whether that list is complete.
type latch struct {
	armed atomic.Bool // the last that was heard is "sold out"
	look  func(known *buyers) (*view, error)

	mu      sync.Mutex
	next    *check // whoever arrives joins it; nil: none wanted yet
	running bool
	known   *buyers // nil until needed

	// Of look alone, which is never called twice at once.
	listed  time.Time     // when the list of buyers was asked for last
	listing time.Duration // what that took
}

// check is one shared read.
type check struct {
	done chan struct{}
	view *view
	err  error
}

// checkPace is the least time between the beginnings of two reads of a latch: it bounds their cost to the database.
const checkPace = 300 * time.Microsecond

// view is what a read has shown.
type view struct {
	terms  Terms
	now    time.Time
	buyers *buyers // nil if the list is not complete as of now
}

// refusal tells why nobody can buy at the moment of the view, or nil.
func (w *view) refusal(v *Voucher) error {
	if w.now.Before(w.terms.StartsAt) || !w.now.Before(w.terms.EndsAt) {
		current := *v // only here: it would be an allocation for everyone who is told "sold out"
		current.Terms, current.ServerTime = w.terms, w.now
		return current.Open(w.now)
	}
	if w.terms.Stock > 0 {
		return nil
	}
	return ErrSoldOut
}

// mayHaveOrdered is false only if the user certainly has no order of this voucher.
func (w *view) mayHaveOrdered(user UserID) bool { return w.buyers == nil || w.buyers.has(user) }

// check waits for a read that begins after the call.
func (l *latch) check(ctx context.Context) (*view, error) {
	l.mu.Lock()
	if l.next == nil {
		l.next = &check{done: make(chan struct{})}
	}
	c := l.next
	if !l.running {
		l.running = true
		go l.run()
	}
	l.mu.Unlock()
	select {
	case <-c.done:
		return c.view, c.err
	case <-ctx.Done():
		return nil, Unavailable(context.Cause(ctx))
	}
}

// run reads until nobody waits.
func (l *latch) run() {
	for {
		l.mu.Lock()
		c, known := l.next, l.known
		l.next = nil
		l.running = c != nil
		l.mu.Unlock()
		if c == nil {
			return
		}
		began := time.Now()
		c.err = guarded(func() (err error) {
			c.view, err = l.look(known)
			return err
		})
		if c.err == nil {
			l.keep(c.view)
		}
		close(c.done)
		time.Sleep(checkPace - time.Since(began))
	}
}

// keep remembers what the next read can build on.
func (l *latch) keep(w *view) {
	if w.terms.Stock > 0 && w.now.Before(w.terms.EndsAt) {
		l.armed.Store(false)
	}
	if w.buyers != nil {
		l.mu.Lock()
		l.known = w.buyers
		l.mu.Unlock()
	}
}

// bought adds a buyer of this instance to a list that is being kept.
func (l *latch) bought(user UserID) {
	l.mu.Lock()
	known := l.known
	l.mu.Unlock()
	if known != nil {
		known.add(user)
	}
}

// buyers is the set of users who ever ordered a voucher.
type buyers struct {
	sorted []UserID // as read from the database

	mu     sync.RWMutex
	placed int64 // orders that are certainly covered by sorted and added
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

// add counts an order only if its user was not in the set: an order that the read covered already must not be counted
// twice, or it could stand for one that the set lacks. The count may so fall short, which costs a read but is safe.
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

// worthListing limits the share of time that is spent on reading long lists again and again while single units come
// back and are sold by other instances, or while a list is too long to be read in time. Until then each request looks
// for its own order.
func (l *latch) worthListing() bool { return time.Since(l.listed) >= 10*l.listing }

// look reads the stock row, and the list of buyers where refusals need it and the known one is not complete.
func (s *sale) look(known *buyers) (*view, error) {
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	covered := known.covered() // before the read: what is counted here was committed before it
	terms, now, err := s.vouchers.Terms(ctx, s.id)
	if err != nil {
		return nil, err
	}
	w := &view{terms: terms, now: now}
	open := terms.Stock > 0 && now.Before(terms.EndsAt)
	switch {
	case covered == terms.Placed:
		w.buyers = known
	case !open && s.soldOut.worthListing():
		w.buyers = s.list(ctx)
	}
	return w, nil
}

// list reads the buyers: complete as of a moment that is not before the call, so also for a view that was read before.
// Without an answer it is nil: the view holds all the same.
func (s *sale) list(ctx context.Context) *buyers {
	began := time.Now()
	users, placed, err := s.orders.Buyers(ctx, s.id)
	s.soldOut.listed, s.soldOut.listing = time.Now(), time.Since(began)
	if err != nil {
		return nil
	}
	return &buyers{sorted: users, placed: placed}
}
