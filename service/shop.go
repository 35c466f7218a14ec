// Package service is the shop without its servers: the domain types, the use cases, and the small interfaces that they
// need. Start reading at PlaceOrder.
package service

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"seckill/service/idgen"
	"seckill/service/lock"
)

// Config is what a Shop needs. The first five fields are required.
type Config struct {
	Orders   OrderStore
	Vouchers VoucherStore
	Locker   lock.Locker
	IDs      idgen.Generator // ids of orders, events and vouchers
	Log      *slog.Logger

	Observer  Observer // default: NoObserver
	WakeRelay func()   // called after each commit that wrote an event, to wake the relay; must not block

	// LockScope is what the lock before the database excludes. Default: LockUser.
	LockScope LockScope

	// BatchMax bounds the orders of one transaction. With 1, each order has its own transaction, and
	// the transactions run in parallel. Default 256.
	BatchMax int
	// CommitConcurrency bounds the transactions that place orders at the same time, over all vouchers. Default 16.
	CommitConcurrency int
	// QueueMax bounds the orders that wait for a commit; more are refused with ErrBusy. Default 20,000.
	QueueMax int
	// CommitTimeout bounds a batch, including retries and the resolving of an unknown commit. After it, the orders are
	// answered with ErrUnknown. Default 10 s.
	CommitTimeout time.Duration
	// VoucherTTL bounds how stale title, price and window may be on this instance. Default 1 s.
	VoucherTTL time.Duration
}

// LockScope names what a lock excludes.
type LockScope string

// The scopes. LockUser serializes one user's requests for a voucher. LockVoucher serializes all buyers of a voucher; it
// exists to show what that costs.
const (
	LockUser    LockScope = "user"
	LockVoucher LockScope = "voucher"
)

// Observer is called for what the shop does, for metrics and logs. Its methods are called for every order: they must not
// block, and must be safe for use by many goroutines.
type Observer interface {
	// Answered is called once for each request to place an order: with "" if an order was placed, CodeReplayed if an
	// earlier one was found, else with the refusal.
	Answered(code Code, took time.Duration)
	// Committed is called after each batch, with its orders and the time that the database took.
	Committed(orders int, took time.Duration)
	// Waiting is called with the number of orders that wait for a batch, whenever it changes.
	Waiting(orders int)
	// Expired is called when unpaid orders were closed.
	Expired(orders int)
}

// Outcomes of a request that got an order. They are never errors.
const (
	CodePlaced   Code = "placed"   // a new order; Observer.Answered gets "" instead
	CodeReplayed Code = "replayed" // an order that existed already
)

// NoObserver ignores all events.
type NoObserver struct{}

func (NoObserver) Answered(Code, time.Duration) {}
func (NoObserver) Committed(int, time.Duration) {}
func (NoObserver) Waiting(int)                  {}
func (NoObserver) Expired(int)                  {}

func (c *Config) setDefaults() {
	if c.Observer == nil {
		c.Observer = NoObserver{}
	}
	if c.WakeRelay == nil {
		c.WakeRelay = func() {}
	}
	if c.LockScope == "" {
		c.LockScope = LockUser
	}
	c.BatchMax = orDefault(c.BatchMax, 256)
	c.CommitConcurrency = orDefault(c.CommitConcurrency, 16)
	c.QueueMax = orDefault(c.QueueMax, 20_000)
	c.CommitTimeout = orDefault(c.CommitTimeout, 10*time.Second)
	c.VoucherTTL = orDefault(c.VoucherTTL, time.Second)
}

// orDefault returns v, or def unless v is positive.
func orDefault[T int | time.Duration](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}

// Shop is the use cases. It is safe for use by many goroutines. Close it to finish the orders that wait.
type Shop struct {
	cfg     Config
	commits *committer
	sales   sync.Map // idgen.ID → *saleState
}

// New returns a shop. It starts no goroutine until an order arrives, and does not close what cfg contains.
func New(cfg Config) *Shop {
	cfg.setDefaults()
	s := &Shop{cfg: cfg}
	s.commits = newCommitter(cfg)
	return s
}

// Close refuses new orders with ErrUnavailable and waits until all accepted ones have their result, or ctx ends.
func (s *Shop) Close(ctx context.Context) error { return s.commits.close(ctx) }

// sale returns what this instance knows of a voucher, and a copy of the voucher that is at most Config.VoucherTTL old.
// Concurrent requests share one read. A voucher that cannot be read leaves no entry, so requests with invented ids do not
// fill the map.
func (s *Shop) sale(ctx context.Context, id idgen.ID) (*saleState, *cachedVoucher, error) {
	found, ok := s.sales.Load(id)
	if !ok {
		found, _ = s.sales.LoadOrStore(id, newSaleState(s, id))
	}
	sale := found.(*saleState)
	voucher, err := sale.voucher(ctx)
	return sale, voucher, err
}
