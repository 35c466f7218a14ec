package service

import "context"

// traceKey is the key of the trace in a context.
type traceKey struct{}

// WithTraceParent returns a context for work that is part of a trace, which a W3C traceparent names. The stores write it
// beside the events of that work, so that whoever handles them goes on with the same trace.
func WithTraceParent(ctx context.Context, traceParent string) context.Context {
	return context.WithValue(ctx, traceKey{}, traceParent)
}

// TraceParent is what WithTraceParent put in, or "".
func TraceParent(ctx context.Context) string {
	traceParent, _ := ctx.Value(traceKey{}).(string)
	return traceParent
}
