package service

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"seckill/service/idgen"
	"seckill/service/lock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// voucherID is the voucher of tests with only one.
const voucherID idgen.ID = 7

// countedIDs counts from 1000 on.
type countedIDs struct {
	last atomic.Int64
	err  error
}

func (g *countedIDs) Next(ctx context.Context) (idgen.ID, error) {
	var id [1]idgen.ID
	err := g.NextN(ctx, id[:])
	return id[0], err
}

func (g *countedIDs) NextN(_ context.Context, dst []idgen.ID) error {
	for i := range dst {
		dst[i] = idgen.ID(1000 + g.last.Add(1))
	}
	return g.err
}

func (g *countedIDs) Close(context.Context) error { return nil }

// tryLocker is a lock in memory that never waits.
type tryLocker struct {
	mu       sync.Mutex
	held     map[string]bool
	keys     []string // in the order of Acquire
	err      error    // instead of a grant
	released func(ctx context.Context)
}

func (l *tryLocker) Acquire(ctx context.Context, key string, opts ...lock.Option) (lock.Lease, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keys = append(l.keys, key)
	switch {
	case !lock.NewSettings(opts).Try:
		return nil, fmt.Errorf("%s: the shop must not wait for a lock", key)
	case l.err != nil:
		return nil, l.err
	case l.held[key]:
		return nil, lock.ErrHeld
	}
	if l.held == nil {
		l.held = map[string]bool{}
	}
	l.held[key] = true
	return &tryLease{l: l, ctx: ctx, key: key}, nil
}

func (l *tryLocker) Close() error { return nil }

func (l *tryLocker) holds() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held)
}

type tryLease struct {
	l   *tryLocker
	ctx context.Context
	key string
}

func (t *tryLease) Context() context.Context { return t.ctx }
func (t *tryLease) Token() (uint64, bool)    { return 0, false }
func (t *tryLease) Release(ctx context.Context) error {
	if t.l.released != nil {
		t.l.released(ctx)
	}
	t.l.mu.Lock()
	defer t.l.mu.Unlock()
	delete(t.l.held, t.key)
	return nil
}

// recorder is an Observer that stores what it gets.
type recorder struct {
	mu       sync.Mutex
	answers  map[Code]int
	batches  []int
	expired  int
	waiting  int // the last value
	mostTold int
}

func (r *recorder) Answered(code Code, _ time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answers == nil {
		r.answers = map[Code]int{}
	}
	r.answers[code]++
}

func (r *recorder) Committed(orders int, _ time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.batches = append(r.batches, orders)
}

func (r *recorder) Waiting(orders int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting, r.mostTold = orders, max(r.mostTold, orders)
}

func (r *recorder) Expired(orders int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expired += orders
}

func (r *recorder) expiredOrders() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.expired
}

func (r *recorder) answered(code Code) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.answers[code]
}

func (r *recorder) lastWaiting() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waiting
}

// openShop opens a shop over the store without a lock; set changes its configuration.
func openShop(t testing.TB, store *fakeStore, set ...func(*Config)) *Shop {
	t.Helper()
	cfg := Config{
		Orders: store, Vouchers: store, Locker: lock.None(), IDs: &countedIDs{}, Log: slog.New(slog.DiscardHandler),
	}
	for _, f := range set {
		f(&cfg)
	}
	s := New(cfg)
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
		s.sales.Range(func(_, found any) bool {
			for end := time.Now().Add(time.Minute); found.(*saleState).soldOut.busy(); time.Sleep(readPace) {
				if time.Now().After(end) {
					t.Fatal("a read of the gate does not end")
				}
			}
			return true
		})
	})
	return s
}

// busy reports whether the gate's goroutine runs.
func (g *soldOutGate) busy() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.running
}

func buy(s *Shop, user UserID) error {
	_, _, err := s.PlaceOrder(context.Background(), PlaceRequest{VoucherID: voucherID, UserID: user})
	return err
}

func wantCode(t testing.TB, err error, want Code) {
	t.Helper()
	if got := CodeOf(err); got != want {
		t.Errorf("got %q (%v), want %q", got, err, want)
	}
}

func wantNoError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantAudit(t testing.TB, f *fakeStore) {
	t.Helper()
	if err := f.audit(); err != nil {
		t.Error(err)
	}
}
