package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"seckill/service/lock"
)

// Locker puts a span around each call of a lock that serves a traced request. Closing it closes inner.
func (t *Tracing) Locker(inner lock.Locker) lock.Locker {
	if t == nil {
		return inner
	}
	return tracedLocker{inner, t.tracer}
}

type tracedLocker struct {
	lock.Locker
	tracer trace.Tracer
}

func (l tracedLocker) Acquire(ctx context.Context, key string, opts ...lock.Option) (lock.Lease, error) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return l.Locker.Acquire(ctx, key, opts...)
	}
	// The lease belongs to ctx and not to this span, which is over when the lease begins.
	_, span := l.tracer.Start(ctx, "lock acquire", trace.WithSpanKind(trace.SpanKindClient))
	lease, err := l.Locker.Acquire(ctx, key, opts...)
	outcome := lock.OutcomeOf(lease, err)
	span.SetAttributes(outcomeKey.String(outcome.String()))
	switch outcome {
	case lock.Granted:
		if token, ok := lease.Token(); ok {
			span.SetAttributes(attribute.Int64("seckill.lock.token", int64(token)))
		}
		lease = tracedLease{lease, l.tracer}
		span.End()
	case lock.Failed:
		end(span, err)
	default:
		span.End()
	}
	return lease, err
}

type tracedLease struct {
	lock.Lease
	tracer trace.Tracer
}

func (l tracedLease) Release(ctx context.Context) error {
	ctx, span := l.tracer.Start(ctx, "lock release", trace.WithSpanKind(trace.SpanKindClient))
	err := l.Lease.Release(ctx)
	end(span, err)
	return err
}
