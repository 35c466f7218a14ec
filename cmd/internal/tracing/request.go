package tracing

import (
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"seckill/service"
)

// Header is the header of an answer that names the trace of its request, if there is one to be looked at.
const Header = "Trace-Id"

// outcomeKey says what became of something, in the shop's own words.
const outcomeKey = attribute.Key("seckill.outcome")

// Request begins the span of a request to a route, as a part of the caller's trace if the request names one. It returns
// the request to go on with, and what is to be called when it was answered.
func (t *Tracing) Request(w http.ResponseWriter, r *http.Request, route string) (*http.Request, func(status int, err error)) {
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	ctx, span := t.tracer.Start(ctx, r.Method+" "+route, trace.WithSpanKind(trace.SpanKindServer))
	if sc := span.SpanContext(); sc.IsSampled() {
		span.SetAttributes(semconv.HTTPRequestMethodKey.String(r.Method), semconv.HTTPRoute(route))
		w.Header()[Header] = []string{sc.TraceID().String()}
		ctx = service.WithTraceParent(ctx, traceParent(span))
	}
	return r.WithContext(ctx), func(status int, err error) { answered(span, status, err) }
}

// answered ends the span of a request. Refusals are no failures: an order that is sold out was served well.
func answered(span trace.Span, status int, err error) {
	if span.IsRecording() {
		span.SetAttributes(semconv.HTTPResponseStatusCode(status))
		if status >= http.StatusInternalServerError {
			span.SetStatus(codes.Error, errorText(err))
		}
	}
	span.End()
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
