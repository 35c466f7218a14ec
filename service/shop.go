// Package service is the shop without its servers: the domain types, the use cases, and the small interfaces that they
// need. PlaceOrder tells how an order is placed.
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

	Observer Observer // default: NoObserver
	Changed  func()   // called after each commit that wrote an event, to wake the relay; must not block

	// LockScope says what the lock in front of the database excludes. Default: LockUser.
	LockScope LockScope

	// BatchMax is the most orders that one transaction commits. 1 is the classic pattern: each order a transaction of
	// its own, side by side. Default 256.
	BatchMax int
	// CommitConcurrency bounds the transactions that place orders at the same time, over all vouchers. Default 16.
	CommitConcurrency int
	// QueueMax bounds the orders that wait for a commit; more are refused with ErrBusy. Default 20,000.
	QueueMax int
	// CommitTimeout is how long a batch may take, retries and settling included, before its orders are answered
	// "unknown". Default 10 s.
	CommitTimeout time.Duration
	// VoucherTTL is how long title, price and window may be stale on this instance. Default 1 s.
	VoucherTTL time.Duration
}

// LockScope names what a lock excludes.
type LockScope string

// The scopes. LockUser keeps one user's repeated requests apart; LockVoucher serialises all buyers of a voucher and is
// there to show what that costs.
const (
	LockUser    LockScope = "user"
	LockVoucher LockScope = "voucher"
)

func (c *Config) setDefaults() {
	if c.Observer == nil {
		c.Observer = NoObserver{}
	}
	if c.Changed == nil {
		c.Changed = func() {}
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

func orDefault[T int | time.Duration](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}

// Shop is the use cases. It is safe for use by many goroutines. Close it to drain what is waiting.
type Shop struct {
	cfg     Config
	commits *committer
	sales   sync.Map // idgen.ID → *sale
}

// New opens a shop over its servers. It starts no goroutine until an order arrives, and takes ownership of nothing.
func New(cfg Config) *Shop {
	cfg.setDefaults()
	s := &Shop{cfg: cfg}
	s.commits = newCommitter(cfg)
	return s
}

// Close refuses new orders with ErrUnavailable and waits until those that were waiting have their verdict, or ctx ends.
func (s *Shop) Close(ctx context.Context) error { return s.commits.close(ctx) }

// sale returns this instance's view of a voucher, and a copy of it that is at most Config.VoucherTTL old. However many
// ask at first, the voucher is read once. One that cannot be read leaves nothing behind, also if its callers have
// left by then, so strangers cannot fill the map.
func (s *Shop) sale(ctx context.Context, id idgen.ID) (*sale, *voucherCopy, error) {
	found, ok := s.sales.Load(id)
	if !ok {
		found, _ = s.sales.LoadOrStore(id, newSale(s, id))
	}
	sale := found.(*sale)
	voucher, err := sale.voucher(ctx)
	return sale, voucher, err
}
