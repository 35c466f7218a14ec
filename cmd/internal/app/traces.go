package app

import (
	"context"
	"errors"
	"fmt"

	"seckill/cmd/internal/tracing"
)

// Trace says whether requests are followed through the shop, and where to.
type Trace struct {
	Endpoint string   `name:"traces" placeholder:"URL" help:"Send OpenTelemetry traces to this collector by OTLP/HTTP, such as http://127.0.0.1:4318. Off by default; OTEL_* variables say the rest."`
	Ratio    *float64 `name:"trace-ratio" placeholder:"0…1" help:"How many of the requests that come without a trace start one. Default: all, or as OTEL_TRACES_SAMPLER says."`
}

func (t *Trace) validate() error {
	if t.Endpoint != "" {
		if err := tracing.CheckEndpoint(t.Endpoint); err != nil {
			return fmt.Errorf("--traces: %w", err)
		}
	}
	if t.Ratio != nil && !(*t.Ratio >= 0 && *t.Ratio <= 1) { // not the other way around: NaN is neither
		return errors.New("--trace-ratio must be from 0 to 1")
	}
	return nil
}

// startTraces comes before everything that is traced, so that it is closed after it.
func (a *App) startTraces(ctx context.Context, opts *Options) error {
	if opts.Trace.Endpoint == "" {
		return nil
	}
	traces, err := tracing.Start(ctx, tracing.Options{Endpoint: opts.Trace.Endpoint, Ratio: opts.Trace.Ratio, Log: a.log})
	if err != nil {
		return err
	}
	a.stack.onClose("traces", traces.Close)
	a.traces, a.log = traces, tracing.Log(a.log)
	return nil
}
