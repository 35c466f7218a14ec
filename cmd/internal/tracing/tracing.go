// Package tracing follows an order through the shop with OpenTelemetry: the request, its lock, the commit of its batch,
// its event's way through the relay and the broker, and the consumers. Each part is a decorator of one of the shop's own
// interfaces, put around it in the composition root and nowhere else, so that a shop without traces has none of it.
//
// Only a request starts a trace. What comes after it goes on with the trace that it is handed, and does nothing for an
// order that has none.
package tracing

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
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
// OTEL_EXPORTER_OTLP_HEADERS and the like) are heeded as it documents them.
type Options struct {
	Endpoint string   // http or https URL of an OTLP collector; without a path, /v1/traces is meant
	Ratio    *float64 // of the requests that start a trace; nil leaves it to OTEL_TRACES_SAMPLER, which is all of them by default
	Log      *slog.Logger
}

// Tracing makes spans and sends them. A nil *Tracing is one that is off: its methods return what they are given.
type Tracing struct {
	provider *sdktrace.TracerProvider
	exporter *exporter
	tracer   trace.Tracer
	log      *slog.Logger
}

// closeWithin bounds Close: the last spans are not worth more.
const closeWithin = 3 * time.Second

// Start begins to send. It doesn't wait for the collector, which may come and go: spans that it does not take are
// dropped, and nobody waits for them. Close it last.
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

// CheckEndpoint refuses what is no URL of a collector.
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

// Close sends what is left, in three seconds at most, and stops. That some spans did not get through is no error: it is
// told in the log.
func (t *Tracing) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, closeWithin)
	defer cancel()
	if err := t.provider.ForceFlush(ctx); err != nil {
		t.log.Warn("the last traces could not be sent", "error", err)
	}
	t.exporter.stop()                                   // what is on its way is given up, so that nothing below has to wait for it
	_ = t.provider.Shutdown(context.WithoutCancel(ctx)) // fails only where the exporter does
	return nil
}

// traceParent is a span's context in the form of W3C's traceparent header.
func traceParent(span trace.Span) string {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpan(context.Background(), span), carrier)
	return carrier["traceparent"]
}

// within returns ctx as part of the trace that a traceparent names; as it is if it names none.
func within(ctx context.Context, traceParent string) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": traceParent})
}

// end ends a span, with what went wrong.
func end(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End()
}
