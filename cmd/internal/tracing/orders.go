package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"seckill/service"
	"seckill/service/idgen"
)

// Orders puts spans around the commits of a store, as far as orders are traced.
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

// Place makes two kinds of span. Each traced order has one of its own, "commit order", in its own trace; its event goes
// on from there. The batch, "commit batch", has one as well: a batch serves many traces and can be part of one only, so
// it is in that of its first traced order and has links to the others, and they to it.
func (o tracedOrders) Place(ctx context.Context, voucherID idgen.ID, batch []*service.Placement) {
	commits := o.begin(batch)
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

// begin begins the spans of the traced orders of a batch.
func (o tracedOrders) begin(batch []*service.Placement) (commits []commit) {
	for _, p := range batch {
		if p.TraceParent == "" {
			continue
		}
		_, span := o.tracer.Start(within(context.Background(), p.TraceParent), "commit order",
			trace.WithAttributes(attribute.String("seckill.order", p.Order.ID.String())))
		p.TraceParent = traceParent(span)
		commits = append(commits, commit{p, span})
	}
	return commits
}

// end tells the verdict.
func (c commit) end(batch trace.Span) {
	c.span.AddLink(trace.Link{SpanContext: batch.SpanContext()})
	outcome := service.CodeOf(c.Err)
	switch {
	case c.Replayed:
		outcome = service.CodeReplayed
	case c.Err == nil:
		outcome = "placed"
	}
	c.span.SetAttributes(outcomeKey.String(string(outcome)))
	c.span.SetStatus(failure(c.Err))
	c.span.End()
}

// failure is the status of a span whose work ended with err: refusals are no failures.
func failure(err error) (codes.Code, string) {
	switch service.CodeOf(err) {
	case service.CodeInternal, service.CodeUnavailable, service.CodeUnknown:
		return codes.Error, err.Error()
	}
	return codes.Unset, ""
}

// Pay puts a span around the transaction.
func (o tracedOrders) Pay(ctx context.Context, id idgen.ID, payment service.Payment, eventID idgen.ID) (service.Order, error) {
	ctx, span := o.change(ctx, "pay order", id)
	order, err := o.OrderStore.Pay(ctx, id, payment, eventID)
	span.SetStatus(failure(err))
	span.End()
	return order, err
}

// Cancel puts a span around the transaction.
func (o tracedOrders) Cancel(ctx context.Context, id idgen.ID, user service.UserID, eventID idgen.ID) (service.Order, error) {
	ctx, span := o.change(ctx, "cancel order", id)
	order, err := o.OrderStore.Cancel(ctx, id, user, eventID)
	span.SetStatus(failure(err))
	span.End()
	return order, err
}

// change begins the span of a change, from which the change's event goes on.
func (o tracedOrders) change(ctx context.Context, name string, id idgen.ID) (context.Context, trace.Span) {
	if parent := trace.SpanFromContext(ctx); !parent.IsRecording() {
		return ctx, parent // does nothing with what it is told
	}
	ctx, span := o.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindClient),
		trace.WithAttributes(attribute.String("seckill.order", id.String())))
	return service.WithTraceParent(ctx, traceParent(span)), span
}
