package keeper

import (
	"context"
	"sync"
)

// scope is the time in which a hold lasts, as a context that is made when somebody asks for it: most holders never do.
type scope struct {
	parent context.Context // that of Acquire

	mu     sync.Mutex
	ctx    context.Context // nil until it is asked for
	cancel context.CancelCauseFunc
	cause  error // of its end, which may come first
}

// context ends with the parent, or with end.
func (s *scope) context() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx == nil {
		s.ctx, s.cancel = context.WithCancelCause(s.parent)
		if s.cause != nil {
			s.cancel(s.cause)
		}
	}
	return s.ctx
}

// end ends the context; the first cause counts.
func (s *scope) end(cause error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause == nil {
		s.cause = cause
	}
	if s.cancel != nil {
		s.cancel(cause)
	}
}
