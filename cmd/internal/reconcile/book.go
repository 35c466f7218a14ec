// Package reconcile holds what clients of a shop were told against what its database holds. The audit can tell whether
// a database is sound in itself; only the other side's memory can tell that an order is missing, or stands although its
// buyer was told that it does not.
package reconcile

import (
	"fmt"
	"io"
	"sync"
	"time"

	"seckill/loadtest"
	"seckill/service"
	"seckill/service/idgen"
)

// Book is what clients were told. It is filled while load runs or from a journal, and safe for use by many goroutines.
// It remembers each request once, however often it was sent.
type Book struct {
	mu       sync.Mutex
	entries  int64
	outcomes map[loadtest.Outcome]int64
	vouchers map[idgen.ID]struct{}
	requests map[request]*memory
	keyless  map[wish]*memory // requests without a name, which can only be told apart by user and voucher
	orders   map[idgen.ID]*told
	broken   map[string][]map[string]any // what contradicts itself, by check
}

// request is one request, however often it was sent.
type request struct {
	user service.UserID
	key  string
}

// wish is a user's for a voucher.
type wish struct {
	user    service.UserID
	voucher idgen.ID
}

// memory is what is known about a request.
type memory struct {
	order    idgen.ID  // that it was answered with; 0: none
	unknown  bool      // an answer left it open
	openTill time.Time // when the last such answer came, or was given up
	settled  time.Time // when the last request was sent whose answer was final
	voucher  idgen.ID
}

// open tells whether nobody knows what became of the request.
func (m *memory) open() bool {
	return m.unknown && m.order == 0 && m.settled.Before(m.openTill)
}

// told is an order that a client was told of.
type told struct {
	wish
	key     string // of the request that it answers; "" if it only stood in the way
	created int    // how often it was answered with 201
	found   bool
}

// NewBook returns an empty book.
func NewBook() *Book {
	return &Book{
		outcomes: map[loadtest.Outcome]int64{}, vouchers: map[idgen.ID]struct{}{}, requests: map[request]*memory{},
		keyless: map[wish]*memory{}, orders: map[idgen.ID]*told{}, broken: map[string][]map[string]any{},
	}
}

// Read fills a book from a journal.
func Read(journal io.Reader) (*Book, error) {
	b := NewBook()
	return b, loadtest.ReadJournal(journal, b.Add)
}

// Add takes down an entry. Only requests that place orders, and what settles them, matter here; others are counted. An
// error means that the entry names something that no shop has, such as an order with a malformed id.
func (b *Book) Add(e *loadtest.Entry) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entries++
	if e.Op != loadtest.OpPlace && e.Op != loadtest.OpList {
		return nil
	}
	voucher, err := idgen.ParseID(e.Voucher)
	if err != nil {
		return fmt.Errorf("voucher: %w", err)
	}
	b.vouchers[voucher] = struct{}{}
	w := wish{service.UserID(e.User), voucher}
	m := b.memory(w, e.Key)
	if e.Order != "" {
		id, err := idgen.ParseID(e.Order)
		if err != nil {
			return fmt.Errorf("order: %w", err)
		}
		b.tell(e, w, m, id)
	}
	b.remember(e, m)
	return nil
}

func (b *Book) memory(w wish, key string) *memory {
	if key == "" {
		m := b.keyless[w]
		if m == nil {
			m = &memory{voucher: w.voucher}
			b.keyless[w] = m
		}
		return m
	}
	q := request{w.user, key}
	m := b.requests[q]
	if m == nil {
		m = &memory{voucher: w.voucher}
		b.requests[q] = m
	}
	return m
}

// remember takes down what the answer means for its request.
func (b *Book) remember(e *loadtest.Entry, m *memory) {
	if e.Op == loadtest.OpPlace {
		b.outcomes[e.Outcome]++
	}
	switch class := e.Outcome.Class(); {
	case e.Op == loadtest.OpList:
		if class == loadtest.Accepted && e.At.After(m.settled) {
			m.settled = e.At
		}
	case class == loadtest.Unknown:
		m.unknown = true
		if end := e.At.Add(e.Took); end.After(m.openTill) {
			m.openTill = end
		}
	default:
		if e.Outcome.Final() && e.At.After(m.settled) {
			m.settled = e.At
		}
	}
}

// tell takes down an order that an answer names.
func (b *Book) tell(e *loadtest.Entry, w wish, m *memory, id idgen.ID) {
	t := b.orders[id]
	if t == nil {
		t = &told{wish: w}
		b.orders[id] = t
	}
	if t.user != w.user {
		b.contradict(checkOneUser, map[string]any{"order": id, "user": t.user, "other_user": w.user})
	}
	if e.Op != loadtest.OpPlace || e.Outcome.Class() != loadtest.Accepted {
		return // it stands in the way of the request; it does not answer it
	}
	if e.Outcome == loadtest.Placed {
		if t.created++; t.created == 2 {
			b.contradict(checkOneCreation, map[string]any{"order": id, "user": w.user, "key": e.Key})
		}
	}
	if e.Key == "" {
		return
	}
	t.key = e.Key
	if m.order != 0 && m.order != id {
		b.contradict(checkOneOrder, map[string]any{"user": w.user, "key": e.Key, "order": m.order, "other_order": id})
	}
	m.order = id
}

func (b *Book) contradict(check string, row map[string]any) {
	b.broken[check] = append(b.broken[check], row)
}
