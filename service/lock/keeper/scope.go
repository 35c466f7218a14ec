package keeper

import (
	"context"
	"sync"
)

// scope is the time in which a hold lasts, as a context that is made when somebody asks for it: the shop's orders never
// do.
type scope struct {
	parent context.Context // that of Acquire

	mu     sync.Mutex
	ctx    context.Context // nil until it is asked for
	cancel context.CancelCauseFunc
	cause  error // of its end, which may come first
}

// context ends with the parent, or with stop.
func (s *scope) context() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ctx != nil:
	case s.cause != nil: // whatever became of the parent since
		s.ctx, s.cancel = context.WithCancelCause(context.WithoutCancel(s.parent))
		s.cancel(s.cause)
	default:
		s.ctx, s.cancel = context.WithCancelCause(s.parent)
	}
	return s.ctx
}

// stop ends the context; the first cause counts.
func (s *scope) stop(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause == nil {
		s.cause = cause
	}
	if s.cancel != nil {
		s.cancel(cause)
	}
}
