package app

import (
	"context"
	"errors"
	"fmt"
)

// stack releases what was acquired, in reverse order.
type stack struct{ releases []release }

type release struct {
	name string
	do   func(ctx context.Context) error
}

// onClose registers the release of something that was just acquired.
func (s *stack) onClose(name string, do func(ctx context.Context) error) {
	s.releases = append(s.releases, release{name, do})
}

// run starts a loop. Its release cancels the loop's context and waits for its end.
func (s *stack) run(name string, loop func(ctx context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		loop(ctx)
	}()
	s.onClose(name, func(ctx context.Context) error {
		cancel()
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
}

// close releases everything, whatever fails on the way. A second call does nothing.
func (s *stack) close(ctx context.Context) error {
	var errs []error
	for len(s.releases) > 0 {
		last := s.releases[len(s.releases)-1]
		s.releases = s.releases[:len(s.releases)-1]
		if err := last.do(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", last.name, err))
		}
	}
	return errors.Join(errs...)
}
