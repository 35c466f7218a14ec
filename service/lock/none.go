package lock

import "context"

// None returns a Locker that grants every lock to everyone at once. It is for running without a lock, and for proving
// that a program stays correct without one. Its leases have no token. Closing it has no effect.
func None() Locker { return none{} }

type none struct{}

func (none) Acquire(ctx context.Context, _ string, _ ...Option) (Lease, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return &unlocked{ctx: ctx}, nil
}

func (none) Close() error { return nil }

// unlocked is a lease on nothing.
type unlocked struct {
	ctx      context.Context
	bypassed bool
}

func (u *unlocked) Context() context.Context      { return u.ctx }
func (u *unlocked) Token() (uint64, bool)         { return 0, false }
func (u *unlocked) Release(context.Context) error { return nil }
