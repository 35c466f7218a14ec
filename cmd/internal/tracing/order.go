package tracing

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"seckill/service"
	"seckill/service/idgen"
	"seckill/service/lock"
)

// Header is the response header that names the trace of a request, if it is recorded.
const Header = "Trace-Id"

// outcomeKey is the outcome of a step, in the shop's own words.
const outcomeKey = attribute.Key("seckill.outcome")

// Request starts the span of a request to a route, in the caller's trace if the request names one. It returns the request
// to continue with and a function to call after the answer. Refusals are not failures: "sold out" is a good answer.
func (t *Tracing) Request(w http.ResponseWriter, r *http.Request, route string) (*http.Request, func(status int, err error)) {
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := t.tracer.Start(ctx, r.Method+" "+route, trace.WithSpanKind(trace.SpanKindServer))
	if sc := span.SpanContext(); sc.IsSampled() {
		span.SetAttributes(semconv.HTTPRequestMethodKey.String(r.Method), semconv.HTTPRoute(route))
		w.Header()[Header] = []string{sc.TraceID().String()}
		ctx = service.WithTraceParent(ctx, traceParent(span))
	}
	return r.WithContext(ctx), func(status int, err error) {
		span.SetAttributes(semconv.HTTPResponseStatusCode(status))
		if status >= http.StatusInternalServerError {
			message := ""
			if err != nil {
				message = err.Error()
			}
			span.SetStatus(codes.Error, message)
		}
		span.End()
	}
}

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
	// The lease gets ctx, not the span's context: this span ends when the lease begins.
	_, span := l.tracer.Start(ctx, "lock acquire", trace.WithSpanKind(trace.SpanKindClient))
	defer span.End()
	lease, err := l.Locker.Acquire(ctx, key, opts...)
	outcome := lock.OutcomeOf(lease, err)
	span.SetAttributes(outcomeKey.String(outcome.String()))
	switch outcome {
	case lock.Granted:
		if token, ok := lease.Token(); ok {
			span.SetAttributes(attribute.Int64("seckill.lock.token", int64(token)))
		}
		return tracedLease{lease, l.tracer}, nil
	case lock.Failed:
		span.SetStatus(codes.Error, err.Error())
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

// Orders puts spans around placing, paying and cancelling traced orders.
func (t *Tracing) Orders(inner service.OrderStore) service.OrderStore {
	if t == nil {
		return inner
	}
	return tracedOrders{inner, t.tracer}
}

type tracedOrders struct {
	service.OrderStore
	tracer trace.Tracer
}

// Place makes two kinds of spans. Each traced order has a "commit order" in its own trace, and its event continues from
// there. The batch has one "commit batch": a batch serves many traces but can be part of only one, so it is in the trace
// of its first traced order, and has links to and from the others.
func (o tracedOrders) Place(ctx context.Context, voucherID idgen.ID, batch []*service.Placement) {
	commits := o.startCommits(batch)
	if len(commits) == 0 {
		o.OrderStore.Place(ctx, voucherID, batch)
		return
	}
	links := make([]trace.Link, len(commits)-1)
	for i, c := range commits[1:] {
		links[i] = trace.Link{SpanContext: c.span.SpanContext()}
	}
	ctx, span := o.tracer.Start(trace.ContextWithSpan(ctx, commits[0].span), "commit batch", trace.WithLinks(links...),
		trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.Int("seckill.batch.orders", len(batch)), attribute.String("seckill.voucher", voucherID.String())))
	defer func() { // also if the store panics
		span.End()
		for _, c := range commits {
			c.end(span)
		}
	}()
	o.OrderStore.Place(ctx, voucherID, batch)
}

// commit is a traced order of a batch.
type commit struct {
	*service.Placement
	span trace.Span
}

func (o tracedOrders) startCommits(batch []*service.Placement) (commits []commit) {
	for _, p := range batch {
		if p.TraceParent == "" {
			continue
		}
		_, span := o.tracer.Start(withRemoteParent(context.Background(), p.TraceParent), "commit order",
			trace.WithAttributes(attribute.String("seckill.order", p.Order.ID.String())))
		p.TraceParent = traceParent(span)
		commits = append(commits, commit{p, span})
	}
	return commits
}

func (c commit) end(batch trace.Span) {
	c.span.AddLink(trace.Link{SpanContext: batch.SpanContext()})
	outcome := service.CodeOf(c.Err)
	switch {
	case c.Replayed:
		outcome = service.CodeReplayed
	case c.Err == nil:
		outcome = service.CodePlaced
	}
	c.span.SetAttributes(outcomeKey.String(string(outcome)))
	endOrderSpan(c.span, c.Err)
}

// endOrderSpan ends the span of an order. Refusals are not failures.
func endOrderSpan(span trace.Span, err error) {
	switch service.CodeOf(err) {
	case service.CodeInternal, service.CodeUnavailable, service.CodeUnknown:
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

// Pay puts a span around the transaction.
func (o tracedOrders) Pay(ctx context.Context, id idgen.ID, payment service.Payment, eventID idgen.ID) (service.Order, error) {
	ctx, span := o.startChange(ctx, "pay order", id)
	order, err := o.OrderStore.Pay(ctx, id, payment, eventID)
	endOrderSpan(span, err)
	return order, err
}

// Cancel puts a span around the transaction.
func (o tracedOrders) Cancel(ctx context.Context, id idgen.ID, user service.UserID, eventID idgen.ID) (service.Order, error) {
	ctx, span := o.startChange(ctx, "cancel order", id)
	order, err := o.OrderStore.Cancel(ctx, id, user, eventID)
	endOrderSpan(span, err)
	return order, err
}

// startChange starts the span of a change of an order. The event of the change continues from it.
func (o tracedOrders) startChange(ctx context.Context, name string, id idgen.ID) (context.Context, trace.Span) {
	if !trace.SpanFromContext(ctx).IsRecording() {
		return ctx, trace.SpanFromContext(context.Background()) // a span that does nothing
	}
	ctx, span := o.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("seckill.order", id.String())))
	return service.WithTraceParent(ctx, traceParent(span)), span
}
