package tracing

import (
	"context"
	"strconv"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"seckill/service/outbox"
)

// Broker puts a span around publishing and handling each traced event. system is the value of
// messaging.system. Closing it closes inner.
func (t *Tracing) Broker(inner outbox.Broker, system string) outbox.Broker {
	if t == nil {
		return inner
	}
	return tracedBroker{inner, t.tracer, semconv.MessagingSystemKey.String(system)}
}

type tracedBroker struct {
	outbox.Broker
	tracer trace.Tracer
	system attribute.KeyValue
}

// Publish starts a span for each traced event, from which its consumers continue.
func (b tracedBroker) Publish(ctx context.Context, events []outbox.Event) []error {
	var spans []trace.Span // nil for events that are not traced
	for i, e := range events {
		if e.TraceParent == "" {
			continue
		}
		if spans == nil {
			spans = make([]trace.Span, len(events))
			events = append([]outbox.Event(nil), events...) // the caller's events are not changed
		}
		spans[i] = b.start(withRemoteParent(context.Background(), e.TraceParent), "publish ", e, trace.SpanKindProducer)
		events[i].TraceParent = traceParent(spans[i])
	}
	results := b.Broker.Publish(ctx, events)
	for i, span := range spans {
		if span != nil {
			end(span, results[i])
		}
	}
	return results
}

// Subscribe starts a span for each delivery of a traced event.
func (b tracedBroker) Subscribe(ctx context.Context, group string, handle outbox.Handler) error {
	return b.Broker.Subscribe(ctx, group, func(ctx context.Context, e outbox.Event) error {
		if e.TraceParent == "" {
			return handle(ctx, e)
		}
		ctx = withRemoteParent(ctx, e.TraceParent)
		span := b.start(ctx, "process ", e, trace.SpanKindConsumer, semconv.MessagingConsumerGroupName(group))
		err := handle(trace.ContextWithSpan(ctx, span), e)
		end(span, err)
		return err
	})
}

func (b tracedBroker) start(ctx context.Context, verb string, e outbox.Event, kind trace.SpanKind, more ...attribute.KeyValue) trace.Span {
	_, span := b.tracer.Start(ctx, verb+e.Type, trace.WithSpanKind(kind), trace.WithAttributes(append(more, b.system,
		semconv.MessagingMessageID(strconv.FormatInt(e.ID, 10)), attribute.String("seckill.order", strconv.FormatInt(e.Key, 10)))...))
	return span
}
