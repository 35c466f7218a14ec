package service

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"seckill/service/idgen"
)

// fakeStore is a sequential model of the database: one mutex, and every condition that the guard has (window, stock,
// slots, request ids, restocks, payments). Hooks block it, delay it, make it fail, and observe its arguments. Set them
// before use.
type fakeStore struct {
	mu       sync.Mutex
	vouchers map[idgen.ID]*Voucher
	orders   map[idgen.ID]*Order
	requests map[requestKey]*Order
	byUser   map[holder][]*Order // in the order of placing
	restocks map[string]bool
	payments map[string]fakePayment
	events   map[idgen.ID]EventType // by event id
	sizes    []int                  // of the batches, in order
	stocks   []int64                // of the voucher, after each change of any
	// offset is how far the database's clock is ahead of this machine's.
	offset time.Duration

	// placing is called before a batch is decided, placed after it, and before Place returns.
	placing, placed func(ctx context.Context, voucher idgen.ID, batch []*Placement)
	// refuse makes a batch fail before anything was done.
	refuse func() error
	// reading is called before each read, with the name of its method; its error is the method's.
	reading func(ctx context.Context, method string) error
	// answering is called after each read, while its answer is on the way.
	answering func(method string)
	// listing is called between the two statements of Buyers.
	listing func()

	terms, voucherReads, buyersReads, standings, commits atomic.Int64
}

type requestKey struct {
	user    UserID
	request string
}

type holder struct {
	voucher idgen.ID
	user    UserID
}

type fakePayment struct {
	order     idgen.ID
	refundDue bool
}

var (
	_ OrderStore   = (*fakeStore)(nil)
	_ VoucherStore = (*fakeStore)(nil)
)

func newFakeStore() *fakeStore {
	return &fakeStore{
		vouchers: map[idgen.ID]*Voucher{}, orders: map[idgen.ID]*Order{}, requests: map[requestKey]*Order{}, byUser: map[holder][]*Order{},
		restocks: map[string]bool{}, payments: map[string]fakePayment{}, events: map[idgen.ID]EventType{},
	}
}

func (f *fakeStore) now() time.Time { return time.Now().Add(f.offset) }

// sell adds a voucher that is on sale from now on, for an hour.
func (f *fakeStore) sell(id idgen.ID, stock int64, limit int) {
	now := f.now()
	f.add(Voucher{ID: id, Title: "Coffee", PriceCents: 990, PayWithin: 15 * time.Minute, Terms: Terms{
		Total: stock, Stock: stock, UserLimit: limit, StartsAt: now, EndsAt: now.Add(time.Hour),
	}})
}

func (f *fakeStore) add(v Voucher) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.vouchers[v.ID] = &v
	f.stocks = append(f.stocks, v.Stock)
}

// take changes the stock.
func (f *fakeStore) take(v *Voucher, units int64) {
	v.Stock -= units
	f.stocks = append(f.stocks, v.Stock)
}

// Place decides the batch order by order, each as if it were alone.
func (f *fakeStore) Place(ctx context.Context, id idgen.ID, batch []*Placement) {
	f.commits.Add(1)
	f.mu.Lock()
	f.sizes = append(f.sizes, len(batch))
	f.mu.Unlock()
	if f.placing != nil {
		f.placing(ctx, id, batch)
	}
	var err error
	if f.refuse != nil {
		err = f.refuse()
	}
	f.mu.Lock()
	for _, p := range batch {
		if p.Err = err; err == nil {
			f.decide(id, p)
		}
	}
	f.mu.Unlock()
	if f.placed != nil {
		f.placed(ctx, id, batch)
	}
}

// decide is the guard over one order.
func (f *fakeStore) decide(id idgen.ID, p *Placement) {
	v, ok := f.vouchers[id]
	if !ok {
		p.Err = ErrNotFound
		return
	}
	if o := f.standing(id, p.Order.UserID, p.Order.RequestID, v.UserLimit); o != nil {
		standing := *o
		if p.Err = MatchRequest(&standing, p.Order.RequestID, id); p.Err == nil {
			p.Order, p.Replayed = standing, true
		}
		return
	}
	now := f.now()
	current := *v
	current.ServerTime = now
	if p.Err = current.CheckOpen(now); p.Err != nil {
		return
	}
	if v.Stock == 0 {
		p.Err = ErrSoldOut
		return
	}
	f.take(v, 1)
	v.Placed++
	o := &p.Order
	o.Status, o.Version, o.CreatedAt, o.PayBy = Pending, 1, now, now.Add(p.PayWithin)
	kept := *o
	f.orders[o.ID] = &kept
	f.requests[requestKey{o.UserID, o.RequestID}] = &kept
	f.byUser[holder{id, o.UserID}] = append(f.byUser[holder{id, o.UserID}], &kept)
	f.note(p.EventID, OrderCreated)
}

// note writes an event. It panics if the id was used before.
func (f *fakeStore) note(id idgen.ID, t EventType) {
	if was, used := f.events[id]; id <= 0 || used {
		panic(fmt.Sprintf("event id %d was used for %q", id, was))
	}
	f.events[id] = t
}

func (f *fakeStore) standing(voucher idgen.ID, user UserID, request string, limit int) *Order {
	if o, ok := f.requests[requestKey{user, request}]; ok {
		return o
	}
	if live := f.live(voucher, user); len(live) >= limit {
		return live[len(live)-1]
	}
	return nil
}

// live lists the orders that hold a unit, oldest first.
func (f *fakeStore) live(voucher idgen.ID, user UserID) (live []*Order) {
	for _, o := range f.byUser[holder{voucher, user}] {
		if o.Status != Closed {
			live = append(live, o)
		}
	}
	return live
}

// read counts a read, and lets the hooks see it. The caller calls answer when it has read.
func (f *fakeStore) read(ctx context.Context, method string, count *atomic.Int64) (answer func(), err error) {
	count.Add(1)
	if f.reading != nil {
		if err := f.reading(ctx, method); err != nil {
			return nil, err
		}
	}
	return func() {
		if f.answering != nil {
			f.answering(method)
		}
	}, nil
}

func (f *fakeStore) ExistingOrder(ctx context.Context, voucher idgen.ID, user UserID, request string, limit int) (Order, error) {
	answer, err := f.read(ctx, "ExistingOrder", &f.standings)
	if err != nil {
		return Order{}, err
	}
	defer answer()
	f.mu.Lock()
	defer f.mu.Unlock()
	if o := f.standing(voucher, user, request, limit); o != nil {
		return *o, nil
	}
	return Order{}, ErrNotFound
}

func (f *fakeStore) Buyers(ctx context.Context, voucher idgen.ID) ([]UserID, int64, error) {
	answer, err := f.read(ctx, "Buyers", &f.buyersReads)
	if err != nil {
		return nil, 0, err
	}
	defer answer()
	f.mu.Lock()
	placed := f.vouchers[voucher].Placed
	f.mu.Unlock()
	if f.listing != nil {
		f.listing()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var users []UserID
	for h := range f.byUser {
		if h.voucher == voucher {
			users = append(users, h.user)
		}
	}
	slices.Sort(users)
	return users, placed, nil
}

// audit returns an error if an invariant does not hold.
func (f *fakeStore) audit() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	live, placed, held := map[idgen.ID]int64{}, map[idgen.ID]int64{}, map[holder]int{}
	for _, o := range f.orders {
		placed[o.VoucherID]++
		if o.Status != Closed {
			live[o.VoucherID]++
			held[holder{o.VoucherID, o.UserID}]++
		}
	}
	for id, v := range f.vouchers {
		if v.Stock < 0 || v.Total != v.Stock+live[id] || v.Placed != placed[id] {
			return fmt.Errorf("voucher %d: %+v with %d live of %d orders", id, v.Terms, live[id], placed[id])
		}
	}
	for h, n := range held {
		if n > f.vouchers[h.voucher].UserLimit {
			return fmt.Errorf("user %d holds %d of voucher %d", h.user, n, h.voucher)
		}
	}
	if len(f.requests) != len(f.orders) {
		return fmt.Errorf("%d requests have %d orders", len(f.requests), len(f.orders))
	}
	return nil
}

func (f *fakeStore) placedOrders() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.orders)
}

func (f *fakeStore) batchSizes() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.sizes)
}
