package service

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"seckill/service/idgen"
	"seckill/service/lock"
)

// steps records the order in which a request touches the servers.
type steps struct {
	mu   sync.Mutex
	seen []string
}

func (s *steps) add(step string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen = append(s.seen, step)
}

// tracedShop opens a shop that records the steps of its requests.
func tracedShop(t *testing.T, store *fakeStore) (*Shop, *tryLocker, *steps) {
	trace := &steps{}
	store.reading = func(_ context.Context, method string) error { trace.add("read " + method); return nil }
	store.placing = func(_ context.Context, _ idgen.ID, batch []*Placement) { trace.add("commit") }
	store.placed = func(context.Context, idgen.ID, []*Placement) { trace.add("committed") }
	locker := &tryLocker{released: func(ctx context.Context) {
		if ctx.Err() != nil {
			t.Error("the lock is released on a context that has ended")
		}
		trace.add("release")
	}}
	s := openShop(t, store, func(c *Config) {
		c.Locker, c.IDs = tracedLocker{locker, trace}, tracedIDs{&countedIDs{}, trace}
	})
	return s, locker, trace
}

type tracedLocker struct {
	*tryLocker
	trace *steps
}

func (l tracedLocker) Acquire(ctx context.Context, key string, opts ...lock.Option) (lock.Lease, error) {
	l.trace.add("lock " + key)
	return l.tryLocker.Acquire(ctx, key, opts...)
}

type tracedIDs struct {
	*countedIDs
	trace *steps
}

func (g tracedIDs) NextN(ctx context.Context, dst []idgen.ID) error {
	g.trace.add(fmt.Sprint("ids ", len(dst)))
	return g.countedIDs.NextN(ctx, dst)
}

func TestPlaceOrder_OrderOfSteps(t *testing.T) {
	store := newFakeStore()
	store.sell(voucherID, 1, 1)
	s, locker, trace := tracedShop(t, store)
	wantNoError(t, buy(s, 1))
	placed := []string{"lock lock:voucher:7:user:1", "ids 2", "commit", "committed", "release"}
	if i := slices.Index(trace.seen, placed[0]); i < 1 || !slices.Equal(trace.seen[i:], placed) {
		t.Errorf("a sale goes by %q", trace.seen)
	}

	trace.seen = nil
	wantCode(t, buy(s, 2), CodeSoldOut) // by the commit: the lock is released after a refusal as well
	refused := []string{"lock lock:voucher:7:user:2", "ids 2", "commit", "committed", "release"}
	if !slices.Equal(trace.seen, refused) {
		t.Errorf("a refusal by the commit goes by %q", trace.seen)
	}

	trace.seen = nil
	wantCode(t, buy(s, 3), CodeSoldOut)
	if want := []string{"read Terms", "read Buyers"}; !slices.Equal(trace.seen, want) {
		t.Errorf("a refusal by the gate goes by %q", trace.seen)
	}
	if locker.holds() != 0 {
		t.Error("a lock is left")
	}
}

func TestPlaceOrder_ReleasesTheLockAfterEveryOutcome(t *testing.T) {
	outcomes := map[string]struct {
		prepare func(store *fakeStore, ids *countedIDs, s *Shop)
		code    Code
	}{
		"placed":      {func(*fakeStore, *countedIDs, *Shop) {}, ""},
		"unavailable": {func(f *fakeStore, _ *countedIDs, _ *Shop) { f.refuse = func() error { return ErrUnavailable } }, CodeUnavailable},
		"unknown":     {func(f *fakeStore, _ *countedIDs, _ *Shop) { f.refuse = func() error { return ErrUnknown } }, CodeUnknown},
		"panic": {func(f *fakeStore, _ *countedIDs, _ *Shop) {
			f.placing = func(context.Context, idgen.ID, []*Placement) { panic("a defect") }
		}, CodeUnknown},
		"no ids": {func(_ *fakeStore, ids *countedIDs, _ *Shop) { ids.err = idgen.ErrLeaseLost }, CodeUnavailable},
		"closed": {func(_ *fakeStore, _ *countedIDs, s *Shop) { _ = s.Close(context.Background()) }, CodeUnavailable},
	}
	for name, o := range outcomes {
		t.Run(name, func(t *testing.T) {
			store, ids, seen, locker := newFakeStore(), &countedIDs{}, &recorder{}, &tryLocker{}
			store.sell(voucherID, 5, 1)
			s := openShop(t, store, func(c *Config) { c.Locker, c.IDs, c.Observer = locker, ids, seen })
			o.prepare(store, ids, s)
			wantCode(t, buy(s, 1), o.code)
			if len(locker.keys) != 1 || locker.holds() != 0 {
				t.Errorf("%d locks were taken, %d are held", len(locker.keys), locker.holds())
			}
			if seen.answered(o.code) != 1 || len(seen.answers) != 1 {
				t.Errorf("the observer was told %v", seen.answers)
			}
		})
	}
}

func TestPlaceOrder_SecondRequestDuringTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newFakeStore()
		store.sell(voucherID, 5, 1)
		gate := newTurnstile(store)
		locker, seen := &tryLocker{}, &recorder{}
		s := openShop(t, store, func(c *Config) { c.Locker, c.Observer = locker, seen })
		var wg sync.WaitGroup
		arrive(&wg, s, 1)
		if locker.holds() != 1 {
			t.Error("the lock is not held during the commit")
		}
		for range 63 {
			wantCode(t, buy(s, 1), CodeInProgress)
		}
		gate.let(1)
		wg.Wait()
		if seen.answered("") != 1 || seen.answered(CodeInProgress) != 63 || len(seen.batches) != 1 {
			t.Errorf("told %v and batches of %v", seen.answers, seen.batches)
		}
		wg.Go(func() { wantCode(t, buy(s, 1), CodeAlreadyOrdered) })
		gate.let(1)
		wg.Wait()
		wantAudit(t, store)
	})
}

func TestPlaceOrder_LockNotGranted(t *testing.T) {
	for err, code := range map[error]Code{
		lock.ErrUnavailable: CodeUnavailable, lock.ErrClosed: CodeUnavailable,
		fmt.Errorf("by user 1: %w", lock.ErrHeld): CodeInProgress,
	} {
		store := newFakeStore()
		store.sell(voucherID, 5, 1)
		s := openShop(t, store, func(c *Config) { c.Locker = &tryLocker{err: err} })
		got := buy(s, 1)
		wantCode(t, got, code)
		if code == CodeUnavailable && !errors.Is(got, err) {
			t.Errorf("%v hides %v", got, err)
		}
		if store.commits.Load() != 0 {
			t.Error("an order without a lock was committed")
		}
	}
}

func TestPlaceOrder_LockScopes(t *testing.T) {
	for scope, want := range map[LockScope]string{
		"": "lock:voucher:7:user:42", LockUser: "lock:voucher:7:user:42", LockVoucher: "lock:voucher:7",
	} {
		store, locker := newFakeStore(), &tryLocker{}
		store.sell(voucherID, 5, 1)
		s := openShop(t, store, func(c *Config) { c.Locker, c.LockScope = locker, scope })
		wantNoError(t, buy(s, 42))
		if !slices.Equal(locker.keys, []string{want}) {
			t.Errorf("scope %q locks %q, want %q", scope, locker.keys, want)
		}
	}
}

// With any lock, the guard decides: no oversell, no second order, one answer for each request id.
func TestPlaceOrder_WithAnyLocker(t *testing.T) {
	const buyers, stock, repeats = 300, 50, 3
	for name, locker := range map[string]lock.Locker{
		"none": lock.None(), "memory": &tryLocker{},
		"away": lock.Bypass(&tryLocker{err: lock.ErrUnavailable}, lock.BypassOptions{}),
	} {
		for _, batchMax := range []int{1, 7, 256} {
			t.Run(fmt.Sprint(name, " batch ", batchMax), func(t *testing.T) {
				store, seen := newFakeStore(), &recorder{}
				store.sell(voucherID, stock, 1)
				s := openShop(t, store, func(c *Config) { c.Locker, c.BatchMax, c.Observer = locker, batchMax, seen })
				var wg sync.WaitGroup
				var mu sync.Mutex
				orders := map[UserID]idgen.ID{}
				for i := range UserID(buyers * repeats) {
					user := 1 + i%buyers
					wg.Go(func() {
						o, _, err := s.PlaceOrder(t.Context(), PlaceRequest{VoucherID: voucherID, UserID: user, RequestID: "once"})
						mu.Lock()
						defer mu.Unlock()
						if was, again := orders[user]; err == nil && again && was != o.ID {
							t.Errorf("user %d was answered with orders %v and %v", user, was, o.ID)
						}
						if err == nil {
							orders[user] = o.ID
						}
					})
				}
				wg.Wait()
				if store.placedOrders() != stock || len(orders) != stock || seen.answered("") != stock {
					t.Errorf("%d orders, %d users answered with one, %d told", store.placedOrders(), len(orders), seen.answered(""))
				}
				told := 0
				for code, n := range seen.answers {
					told += n
					if !slices.Contains([]Code{"", CodeReplayed, CodeSoldOut, CodeInProgress}, code) {
						t.Errorf("%d times %q", n, code)
					}
				}
				if told != buyers*repeats {
					t.Errorf("%d answers were told for %d requests", told, buyers*repeats)
				}
				wantAudit(t, store)
			})
		}
	}
}
