package service

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"
)

// sharedRead is one read of the database for all requests that need its result.
type sharedRead[T any] struct {
	done  chan struct{} // closed when value and err are set
	value T             // zero after an error
	err   error
}

// readTimeout bounds one shared read.
const readTimeout = 2 * time.Second

func newSharedRead[T any]() *sharedRead[T] { return &sharedRead[T]{done: make(chan struct{})} }

// wait returns the result, or ErrUnavailable if ctx ends first.
func (r *sharedRead[T]) wait(ctx context.Context) (value T, err error) {
	select {
	case <-r.done:
		return r.value, r.err
	case <-ctx.Done():
		return value, Unavailable(context.Cause(ctx))
	}
}

// run sets the result. The caller closes done after it.
func (r *sharedRead[T]) run(read func() (T, error)) {
	var value T
	r.err = recovered(func() (err error) {
		value, err = read()
		return err
	})
	if r.err == nil {
		r.value = value
	}
}

// recovered turns a panic of fn, which runs on a goroutine of the shop, into an error.
func recovered(fn func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = &Error{Code: CodeInternal, Message: "panic", Err: fmt.Errorf("%v\n%s", cause, debug.Stack())}
		}
	}()
	return fn()
}
