package outbox

import (
	"context"
	"fmt"
)

// Lifetime is that of a broker: what is bound to it ends when it is closed.
type Lifetime struct {
	ctx context.Context
	end context.CancelFunc
}

// NewLifetime begins one.
func NewLifetime() Lifetime {
	ctx, end := context.WithCancel(context.Background())
	return Lifetime{ctx, end}
}

// End ends it, and everything that is bound to it. A second call does nothing.
func (l Lifetime) End() { l.end() }

// Done is closed at its end.
func (l Lifetime) Done() <-chan struct{} { return l.ctx.Done() }

// Err is ErrClosed once it has ended.
func (l Lifetime) Err() error {
	if l.ctx.Err() != nil {
		return ErrClosed
	}
	return nil
}

// Bind returns a context that ends with ctx or with the lifetime, whichever comes first. The cancel function has to be
// called.
func (l Lifetime) Bind(ctx context.Context) (context.Context, context.CancelFunc) {
	bound, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.ctx, func() { cancel(ErrClosed) })
	return bound, func() { stop(); cancel(nil) }
}

// Publish calls a client library that may not heed its context: when ctx or the lifetime ends, every event is
// ErrUnavailable or ErrClosed, whatever call is still at; it goes on beside, and its result is dropped.
func (l Lifetime) Publish(ctx context.Context, events []Event, call func(ctx context.Context) []error) []error {
	if l.Err() != nil || ctx.Err() != nil || len(events) == 0 {
		return Same(len(events), l.away(context.Cause(ctx)))
	}
	ctx, cancel := l.Bind(ctx)
	results := make(chan []error, 1)
	go func() {
		defer cancel()
		results <- call(ctx)
	}()
	select {
	case r := <-results:
		return r
	case <-ctx.Done():
	}
	select { // the result may have come at the same moment
	case r := <-results:
		return r
	default:
		return Same(len(events), l.away(context.Cause(ctx)))
	}
}

func (l Lifetime) away(cause error) error {
	if err := l.Err(); err != nil {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, cause)
}
