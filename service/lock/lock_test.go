package lock

import (
	"context"
	"errors"
	"testing"
	"time"
)

// fakeLease counts its releases and answers them with err.
type fakeLease struct {
	unlocked
	err      error
	released int
}

func (l *fakeLease) Release(context.Context) error { l.released++; return l.err }

type fakeLocker struct{ lease *fakeLease }

func (f fakeLocker) Acquire(ctx context.Context, _ string, _ ...Option) (Lease, error) {
	f.lease.ctx = ctx
	return f.lease, nil
}

func (f fakeLocker) Close() error { return nil }

func TestDo_JoinsLoss(t *testing.T) {
	failure := errors.New("work failed")
	for name, c := range map[string]struct {
		release, work error
		want          []error
	}{
		"all well":            {},
		"work fails":          {work: failure, want: []error{failure}},
		"lost":                {release: ErrLost, want: []error{ErrLost}},
		"lost and work fails": {release: ErrLost, work: failure, want: []error{ErrLost, failure}},
		"release unanswered":  {release: ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			lease := &fakeLease{err: c.release}
			err := Do(t.Context(), fakeLocker{lease}, "k", func(context.Context) error { return c.work })
			if (err == nil) != (len(c.want) == 0) {
				t.Fatalf("error %v, want %v", err, c.want)
			}
			for _, want := range c.want {
				if !errors.Is(err, want) {
					t.Errorf("error %v is not %v", err, want)
				}
			}
			if lease.released != 1 {
				t.Errorf("released %d times", lease.released)
			}
		})
	}
}

func TestDo_ReleasesOnPanic(t *testing.T) {
	lease := &fakeLease{}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		_ = Do(t.Context(), fakeLocker{lease}, "k", func(context.Context) error { panic("boom") })
	}()
	if lease.released != 1 {
		t.Errorf("released %d times", lease.released)
	}
}

// observerFuncs is an Observer made of functions.
type observerFuncs struct {
	locked  func(Outcome)
	changed func(open bool, cause error)
}

func (o observerFuncs) Locked(outcome Outcome, _ time.Duration) { o.locked(outcome) }
func (o observerFuncs) BreakerChanged(open bool, cause error)   { o.changed(open, cause) }

func TestObserve_ReportsLossOnce(t *testing.T) {
	lost := 0
	locker := Observe(fakeLocker{&fakeLease{err: ErrLost}}, observerFuncs{locked: func(o Outcome) {
		if o == Lost {
			lost++
		}
	}})
	lease, err := locker.Acquire(t.Context(), "k")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := lease.Release(t.Context()); !errors.Is(err, ErrLost) {
			t.Fatal(err)
		}
	}
	if lost != 1 {
		t.Fatalf("reported %d times", lost)
	}
}

func TestNone_GrantsEveryoneExceptTheCancelled(t *testing.T) {
	locker := None()
	for range 2 {
		lease, err := locker.Acquire(t.Context(), "k", Try())
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := lease.Token(); ok || IsBypassed(lease) {
			t.Fatal("a token, or bypassed")
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := locker.Acquire(ctx, "k"); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func BenchmarkNone(b *testing.B) {
	locker := None()
	b.ReportAllocs()
	for b.Loop() {
		lease, _ := locker.Acquire(b.Context(), "k", Try())
		_ = lease.Release(b.Context())
	}
}

func BenchmarkObservedBypass(b *testing.B) {
	locker := Observe(Bypass(None(), BypassOptions{}), NoObserver{})
	b.ReportAllocs()
	for b.Loop() {
		lease, _ := locker.Acquire(b.Context(), "k", Try())
		_ = lease.Release(b.Context())
	}
}
