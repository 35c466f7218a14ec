package keeper

import (
	"context"
	"errors"
	"testing"

	"seckill/service/lock"
)

// The first cause counts, whenever the context is asked for.
func TestScopeEndsOnce(t *testing.T) {
	left := errors.New("the caller has left")
	for _, early := range []bool{true, false} {
		for _, lostFirst := range []bool{true, false} {
			parent, leave := context.WithCancelCause(t.Context())
			s := scope{parent: parent}
			if early && s.context().Err() != nil {
				t.Fatal("it begins ended")
			}
			want := left
			if lostFirst {
				want = lock.ErrLost
				s.stop(lock.ErrLost)
				leave(left)
			} else {
				leave(left)
				if !early {
					want = lock.ErrLost // nobody has looked before it was lost as well
				}
				s.stop(lock.ErrLost)
			}
			s.stop(lock.ErrClosed)
			if got := context.Cause(s.context()); !errors.Is(got, want) || s.context().Err() == nil {
				t.Errorf("asked for early %v, lost first %v: %v, want %v", early, lostFirst, got, want)
			}
		}
	}
}

// A hold that is lost is over for whoever asks its context, also at the moment between the discovery and the end of the
// context: a holder that was paused looks just then.
func TestLostMeansOver(t *testing.T) {
	h := newHold(New(nil, Options{}), "key", lock.Settings{})
	h.scope.parent = t.Context()
	l := &lease{hold: h}
	l.ctx.lease = l
	h.state.Store(held)
	if err := l.Context().Err(); err != nil {
		t.Fatal(err)
	}
	h.state.Store(lost) // somebody has found out, and is not on from there yet
	if err := l.Context().Err(); err == nil || !errors.Is(context.Cause(l.Context()), lock.ErrLost) {
		t.Errorf("it says %v, because of %v", err, context.Cause(l.Context()))
	}
}
