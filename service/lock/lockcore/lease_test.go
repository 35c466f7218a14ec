package lockcore

import (
	"context"
	"errors"
	"testing"
	"time"

	"seckill/service/lock"
)

// A holder that was paused may look at its context after the loss was discovered and before the context was cancelled.
func TestLeaseContext_EndsAtTheDiscoveryOfTheLoss(t *testing.T) {
	h := newHold(New(nil, Options{}), "key", lock.Settings{})
	h.ctx, h.cancel = context.WithCancelCause(t.Context())
	until := time.Now().Add(time.Hour)
	h.validUntil.Store(&until)
	h.state.Store(held)
	l := &lease{hold: h}
	l.ctx = leaseContext{h.ctx, l}
	if err := l.Context().Err(); err != nil {
		t.Fatal(err)
	}
	h.state.Store(lost)
	if err := l.Context().Err(); err == nil || !errors.Is(context.Cause(l.Context()), lock.ErrLost) {
		t.Errorf("error %v, cause %v", err, context.Cause(l.Context()))
	}
}
