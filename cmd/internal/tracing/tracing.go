// Package tracing records an order's way through the shop with OpenTelemetry: the request, its lock, the commit of its
// batch, its event's way through relay and broker, and the consumers. Most parts decorate one of the shop's interfaces;
// Request and Log are called by the HTTP handler and the logger. Only the composition root knows of this package.
//
// Only a request starts a trace. All later steps continue the trace they get, and do nothing without one.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// Options say where traces go. The SDK's variables (OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_BSP_*,
// OTEL_EXPORTER_OTLP_HEADERS, …) work as it documents them.
type Options struct {
	Endpoint string   // URL of an OTLP collector over HTTP; the default path is /v1/traces
	Ratio    *float64 // of requests that start a trace; nil: as OTEL_TRACES_SAMPLER says, all by default
	Log      *slog.Logger
}

// Tracing makes and sends spans. A nil *Tracing is off: its methods Locker, Orders and Broker return their argument. Do not
// call Request or Close then.
type Tracing struct {
	provider *sdktrace.TracerProvider
	exporter *exporter
	tracer   trace.Tracer
	log      *slog.Logger
}

// closeTimeout bounds Close: the last spans are not worth more.
const closeTimeout = 3 * time.Second

// Start begins to send spans. It does not wait for the collector: while that is unavailable, spans are dropped. Close it
// last.
func Start(ctx context.Context, opts Options) (*Tracing, error) {
	endpoint, err := parseEndpoint(opts.Endpoint)
	if err != nil {
		return nil, err
	}
	otlp, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(endpoint))
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	return start(ctx, otlp, opts)
}

// CheckEndpoint returns an error if endpoint is not the URL of a collector.
func CheckEndpoint(endpoint string) error {
	_, err := parseEndpoint(endpoint)
	return err
}

func parseEndpoint(endpoint string) (string, error) {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil:
		return "", err
	case u.Scheme != "http" && u.Scheme != "https", u.Host == "":
		return "", fmt.Errorf("%q is not the URL of an OTLP collector, which looks like http://127.0.0.1:4318", endpoint)
	case u.Path == "" || u.Path == "/":
		u.Path = "/v1/traces" // https://opentelemetry.io/docs/specs/otlp/#otlphttp-request
	}
	return u.String(), nil
}

// start is Start with any exporter.
func start(ctx context.Context, to sdktrace.SpanExporter, opts Options) (*Tracing, error) {
	about, err := resource.New(ctx,
		resource.WithAttributes(semconv.ServiceName("seckill")),
		resource.WithHost(), resource.WithProcessPID(), resource.WithTelemetrySDK(),
		resource.WithFromEnv()) // last: it wins
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("traces: %w", err)
	}
	t := &Tracing{exporter: newExporter(to, opts.Log), log: opts.Log}
	settings := []sdktrace.TracerProviderOption{sdktrace.WithResource(about), sdktrace.WithBatcher(t.exporter)}
	if opts.Ratio != nil {
		settings = append(settings, sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(*opts.Ratio))))
	}
	t.provider = sdktrace.NewTracerProvider(settings...)
	t.tracer = t.provider.Tracer("seckill")
	return t, nil
}

// Close sends the remaining spans, within three seconds, and stops. Spans that cannot be sent are logged, not an error.
func (t *Tracing) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closeTimeout)
	defer cancel()
	if err := t.provider.ForceFlush(ctx); err != nil {
		t.log.Warn("the last traces could not be sent", "error", err)
	}
	t.exporter.stop()                                   // so that Shutdown does not wait for exports
	_ = t.provider.Shutdown(context.WithoutCancel(ctx)) // the exporter has logged its errors
	return nil
}

// traceParent returns a span's context as a W3C traceparent header.
func traceParent(span trace.Span) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpan(context.Background(), span), carrier)
	return carrier["traceparent"]
}

// withRemoteParent returns ctx as part of the trace of a traceparent, or unchanged if that is not valid.
func withRemoteParent(ctx context.Context, traceParent string) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": traceParent})
}

// end ends a span with the error of its step.
func end(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}

// Log adds trace_id and span_id to log lines that are written with the context of a span.
func Log(log *slog.Logger) *slog.Logger { return slog.New(logHandler{log.Handler()}) }

type logHandler struct{ slog.Handler }

func (h logHandler) Handle(ctx context.Context, r slog.Record) error {
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		r = r.Clone()
		r.AddAttrs(slog.String("trace_id", sc.TraceID().String()), slog.String("span_id", sc.SpanID().String()))
	}
	return h.Handler.Handle(ctx, r)
}

func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attrs)}
}
func (h logHandler) WithGroup(name string) slog.Handler { return logHandler{h.Handler.WithGroup(name)} }

// exporter logs when the collector becomes unavailable and when it is back, once each. The SDK's global error handler
// would get every failed batch.
type exporter struct {
	sdktrace.SpanExporter
	log     *slog.Logger
	failing atomic.Bool
	stopped context.Context
	stop    context.CancelFunc // ends running exports and makes later ones do nothing
}

func newExporter(to sdktrace.SpanExporter, log *slog.Logger) *exporter {
	e := &exporter{SpanExporter: to, log: log}
	e.stopped, e.stop = context.WithCancel(context.Background())
	return e
}

// ExportSpans sends a batch. A batch that fails is lost: the wrapped exporter has retried already.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if e.stopped.Err() != nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(e.stopped, cancel)()
	err := e.SpanExporter.ExportSpans(ctx, spans)
	switch {
	case err == nil && e.failing.Swap(false):
		e.log.Info("the collector of traces is back")
	case err != nil && e.stopped.Err() == nil && !e.failing.Swap(true):
		e.log.Warn("the collector of traces is away; traces are lost meanwhile", "error", err)
	}
	return nil
}
