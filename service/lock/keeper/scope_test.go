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
