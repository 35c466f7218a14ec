package lock

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// scripted is a Locker whose answer the test decides.
type scripted struct {
	answer func(Settings) error
	calls  int
}

func (s *scripted) Acquire(ctx context.Context, _ string, opts ...Option) (Lease, error) {
	s.calls++
	if err := s.answer(NewSettings(opts)); err != nil {
		return nil, err
	}
	return &unlocked{ctx: ctx}, nil
}

func (s *scripted) Close() error { return nil }

func unavailable(Settings) error { return fmt.Errorf("dial: %w", ErrUnavailable) }
func granted(Settings) error     { return nil }

func TestBypass_OpensProbesAndCloses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var changes []string
		backend := &scripted{answer: unavailable}
		locker := Bypass(backend, BypassOptions{Failures: 2, Pause: time.Second, Observer: observerFuncs{changed: func(open bool, cause error) {
			changes = append(changes, fmt.Sprintf("open=%t cause=%t", open, errors.Is(cause, ErrUnavailable)))
		}}})
		acquire := func(wantBypassed bool, wantCalls int) {
			t.Helper()
			lease, err := locker.Acquire(t.Context(), "k", Try())
			if err != nil {
				t.Fatal(err)
			}
			if IsBypassed(lease) != wantBypassed || backend.calls != wantCalls {
				t.Fatalf("bypassed %t, %d calls; want %t, %d", IsBypassed(lease), backend.calls, wantBypassed, wantCalls)
			}
			if _, ok := lease.Token(); ok && wantBypassed {
				t.Fatal("a bypassed lease has a token")
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		acquire(true, 1)
		acquire(true, 2) // opens
		acquire(true, 2) // left alone
		time.Sleep(time.Second)
		acquire(true, 3) // probe fails
		acquire(true, 3)
		backend.answer = granted
		acquire(true, 3)
		time.Sleep(time.Second)
		acquire(false, 4) // probe succeeds
		acquire(false, 5)
		want := []string{"open=true cause=true", "open=false cause=false"}
		if fmt.Sprint(changes) != fmt.Sprint(want) {
			t.Fatalf("changes %q, want %q", changes, want)
		}
	})
}

func TestBypass_LetsOneProbeThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &scripted{answer: unavailable}
		locker := Bypass(backend, BypassOptions{Failures: 1, Timeout: time.Second, Pause: time.Second})
		if _, err := locker.Acquire(t.Context(), "k"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		hang := make(chan struct{})
		backend.answer = func(Settings) error { <-hang; return nil }
		probed := make(chan struct{})
		go func() {
			defer close(probed)
			locker.Acquire(t.Context(), "k")
		}()
		synctest.Wait()
		for range 100 { // would hang, were they let through
			lease, err := locker.Acquire(t.Context(), "k")
			if err != nil || !IsBypassed(lease) {
				t.Fatalf("bypassed %v, error %v", lease, err)
			}
		}
		close(hang)
		<-probed
		if backend.calls != 2 {
			t.Fatalf("%d calls, want the first and one probe", backend.calls)
		}
	})
}

func TestBypass_PassesOtherErrorsAndOptions(t *testing.T) {
	backend := &scripted{}
	locker := Bypass(backend, BypassOptions{Failures: 1, Timeout: time.Minute})
	for _, want := range []error{ErrHeld, ErrClosed, ErrLost, context.Canceled} {
		backend.answer = func(s Settings) error {
			if !s.Try || s.Timeout != time.Minute {
				t.Errorf("settings %+v", s)
			}
			return want
		}
		if _, err := locker.Acquire(t.Context(), "k", Try()); !errors.Is(err, want) {
			t.Errorf("error %v, want %v", err, want)
		}
	}
	backend.answer = func(s Settings) error {
		if s.Timeout != time.Second {
			t.Errorf("the caller's timeout lost: %+v", s)
		}
		return nil
	}
	if _, err := locker.Acquire(t.Context(), "k", WithTimeout(time.Second)); err != nil {
		t.Fatal(err)
	}
}

func TestObserve_CountsOutcomes(t *testing.T) {
	counts := map[Outcome]int{}
	backend := &scripted{}
	locker := Observe(Bypass(backend, BypassOptions{}), observerFuncs{locked: func(o Outcome) { counts[o]++ }})
	for _, err := range []error{nil, ErrHeld, ErrUnavailable, context.Canceled, ErrClosed} {
		backend.answer = func(Settings) error { return err }
		if lease, _ := locker.Acquire(t.Context(), "k"); lease != nil && IsBypassed(lease) != (err == ErrUnavailable) {
			t.Errorf("bypassed %t after %v", IsBypassed(lease), err)
		}
	}
	for _, o := range []Outcome{Granted, Held, Bypassed, Cancelled, Failed} {
		if counts[o] != 1 {
			t.Errorf("%d × %s, want 1", counts[o], o)
		}
	}
}
