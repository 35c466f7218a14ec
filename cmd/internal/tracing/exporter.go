package tracing

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// exporter keeps the troubles of a collector to itself: they are told once when they begin and once when they are over,
// instead of with every batch to the SDK's global error handler.
type exporter struct {
	sdktrace.SpanExporter
	log     *slog.Logger
	failing atomic.Bool
	stopped context.Context
	stop    context.CancelFunc // ends exports on their way, and those to come
}

func newExporter(to sdktrace.SpanExporter, log *slog.Logger) *exporter {
	e := &exporter{SpanExporter: to, log: log}
	e.stopped, e.stop = context.WithCancel(context.Background())
	return e
}

// errStopped is what becomes of spans after the end.
var errStopped = errors.New("stopped")

// ExportSpans sends a batch, which is lost if that fails: the exporter below has tried again as long as it makes sense.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if e.stopped.Err() != nil {
		return nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(e.stopped, func() { cancel(errStopped) })()
	err := e.SpanExporter.ExportSpans(ctx, spans)
	switch {
	case err == nil && e.failing.Swap(false):
		e.log.Info("the collector of traces is back")
	case err != nil && e.stopped.Err() == nil && !e.failing.Swap(true):
		e.log.Warn("the collector of traces is away; traces are lost meanwhile", "error", err)
	}
	return nil
}
