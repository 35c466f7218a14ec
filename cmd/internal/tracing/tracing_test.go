package tracing

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"seckill/service"
	"seckill/service/idgen"
	"seckill/service/lock"
	"seckill/service/outbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// traced starts tracing into memory. What it returns gives the spans so far.
func traced(t *testing.T) (*Tracing, func() tracetest.SpanStubs) {
	t.Helper()
	memory := tracetest.NewInMemoryExporter()
	tr, err := start(t.Context(), memory, Options{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tr.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return tr, func() tracetest.SpanStubs {
		if err := tr.provider.ForceFlush(t.Context()); err != nil {
			t.Fatal(err)
		}
		return memory.GetSpans()
	}
}

// Off means that there is nothing: what is given comes back as it is, and asking for a trace allocates nothing.
func TestTracing_OffIsFree(t *testing.T) {
	var off *Tracing
	locker, orders, broker := lock.None(), service.OrderStore(&fakeOrders{}), outbox.Broker(&fakeBroker{})
	if off.Locker(locker) != locker || off.Orders(orders) != orders || off.Broker(broker, "inproc") != broker {
		t.Error("something was put around")
	}
	ctx, cancel := context.WithCancel(t.Context()) // as deep as that of a request
	defer cancel()
	if n := testing.AllocsPerRun(100, func() { _ = service.TraceParent(ctx) }); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

// fakeOrders places as a test says.
type fakeOrders struct {
	service.OrderStore
	place func(ctx context.Context, batch []*service.Placement)
}

func (f *fakeOrders) Place(ctx context.Context, _ idgen.ID, batch []*service.Placement) {
	f.place(ctx, batch)
}

// A batch of traced and untraced orders: the traced ones have spans with their verdicts, in their own traces, and the
// event goes on from there. Failures are failures, refusals are not.
func TestOrders_Batch(t *testing.T) {
	tr, spans := traced(t)
	const one, two = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	batch := []*service.Placement{{}, {TraceParent: one}, {TraceParent: two}, {TraceParent: two}}
	store := tr.Orders(&fakeOrders{place: func(ctx context.Context, batch []*service.Placement) {
		if !trace.SpanFromContext(ctx).IsRecording() {
			t.Error("the store works outside of the batch's span")
		}
		batch[2].Err, batch[3].Err = service.ErrSoldOut, service.Unknown(errors.New("no answer"))
	}})
	store.Place(t.Context(), 7, batch)

	got := spans()
	if len(got) != 4 || got[0].Name != "commit batch" || len(got[0].Links) != 2 {
		t.Fatalf("%d spans: %+v", len(got), got)
	}
	if got[0].Parent.SpanID() != got[1].SpanContext.SpanID() {
		t.Error("the batch is not part of its first order's trace")
	}
	for i, want := range []struct {
		outcome string
		status  codes.Code
	}{{"placed", codes.Unset}, {"sold-out", codes.Unset}, {"outcome-unknown", codes.Error}} {
		span := got[1+i]
		if valueOf(span, "seckill.outcome") != want.outcome || span.Status.Code != want.status || len(span.Links) != 1 {
			t.Errorf("order %d: %s, %v, %d links; want %+v", i, valueOf(span, "seckill.outcome"), span.Status, len(span.Links), want)
		}
		if parent := batch[1+i].TraceParent; parent[36:52] != span.SpanContext.SpanID().String() {
			t.Errorf("the event of order %d goes on from %s, its span is %s", i, parent, span.SpanContext.SpanID())
		}
	}
	if batch[0].TraceParent != "" {
		t.Errorf("an order without a trace got %s", batch[0].TraceParent)
	}
	untraced := tr.Orders(&fakeOrders{place: func(context.Context, []*service.Placement) {}})
	untraced.Place(t.Context(), 7, []*service.Placement{{}, {}})
	if more := spans(); len(more) != len(got) {
		t.Error("a batch without traced orders has spans")
	}
}

func valueOf(span tracetest.SpanStub, key string) string {
	for _, a := range span.Attributes {
		if string(a.Key) == key {
			return a.Value.AsString()
		}
	}
	return ""
}

// A store that panics leaves no span open: the committer answers its orders and goes on.
func TestOrders_BatchPanics(t *testing.T) {
	tr, spans := traced(t)
	store := tr.Orders(&fakeOrders{place: func(context.Context, []*service.Placement) { panic("planted") }})
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic got lost")
			}
		}()
		store.Place(t.Context(), 7, []*service.Placement{{TraceParent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}})
	}()
	if got := spans(); len(got) != 2 {
		t.Errorf("%d spans were ended, want 2", len(got))
	}
}

// fakeBroker gives what is published to its handler, and confirms all but the first.
type fakeBroker struct {
	outbox.Broker
	published []outbox.Event
}

func (f *fakeBroker) Publish(_ context.Context, events []outbox.Event) []error {
	f.published = events
	results := make([]error, len(events))
	results[0] = outbox.ErrUnavailable
	return results
}

func (f *fakeBroker) Subscribe(ctx context.Context, _ string, handle outbox.Handler) error {
	for _, e := range f.published {
		_ = handle(ctx, e) // its error is the span's
	}
	return nil
}

// Events go on from the span under which they were published; those without a trace, or with a broken one, are left
// alone, and so are the caller's.
func TestBroker_Spans(t *testing.T) {
	tr, spans := traced(t)
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	events := []outbox.Event{{ID: 1, Type: "A", TraceParent: parent}, {ID: 2, Type: "B"}, {ID: 3, Type: "C", TraceParent: parent}}
	inner := &fakeBroker{}
	broker := tr.Broker(inner, "inproc")
	if results := broker.Publish(t.Context(), events); !errors.Is(results[0], outbox.ErrUnavailable) || results[2] != nil {
		t.Errorf("results %v", results)
	}
	if events[0].TraceParent != parent || inner.published[0].TraceParent == parent || inner.published[1].TraceParent != "" {
		t.Errorf("the caller's events are %v, the broker's %v", events, inner.published)
	}
	planted := errors.New("planted")
	err := broker.Subscribe(t.Context(), "points", func(ctx context.Context, e outbox.Event) error {
		if traced := trace.SpanFromContext(ctx).IsRecording(); traced != (e.TraceParent != "") {
			t.Errorf("event %d is handled under a span: %v", e.ID, traced)
		}
		return planted
	})
	if err != nil {
		t.Error(err)
	}
	got := spans()
	if len(got) != 4 || got[0].Status.Code != codes.Error || got[1].Status.Code != codes.Unset || got[2].Status.Code != codes.Error {
		t.Fatalf("%d spans: %+v", len(got), got)
	}
	if got[3].Name != "process C" || got[3].Parent.SpanID() != got[1].SpanContext.SpanID() {
		t.Errorf("%s is part of %s, want %s", got[3].Name, got[3].Parent.SpanID(), got[1].SpanContext.SpanID())
	}
}

// heldLocker refuses, or fails.
type heldLocker struct {
	lock.Locker
	err error
}

func (h heldLocker) Acquire(context.Context, string, ...lock.Option) (lock.Lease, error) {
	return nil, h.err
}

// A lock that another holds is no failure, and a request without a trace has no spans.
func TestLocker_Outcomes(t *testing.T) {
	tr, spans := traced(t)
	locker := tr.Locker(lock.None())
	lease, err := locker.Acquire(t.Context(), "a")
	if err != nil || lease.Release(t.Context()) != nil || len(spans()) != 0 {
		t.Fatalf("%v, and %d spans", err, len(spans()))
	}
	ctx, request := tr.tracer.Start(t.Context(), "request")
	lease, err = locker.Acquire(ctx, "a")
	if err != nil || lease.Release(ctx) != nil {
		t.Fatal(err)
	}
	for _, cause := range []error{lock.ErrHeld, lock.ErrUnavailable} {
		if _, err := tr.Locker(heldLocker{err: cause}).Acquire(ctx, "a"); !errors.Is(err, cause) {
			t.Errorf("%v became %v", cause, err)
		}
	}
	request.End()
	want := []struct {
		name, outcome string
		status        codes.Code
	}{
		{"lock acquire", "granted", codes.Unset}, {"lock release", "", codes.Unset},
		{"lock acquire", "held", codes.Unset}, {"lock acquire", "failed", codes.Error}, {"request", "", codes.Unset},
	}
	got := spans()
	if len(got) != len(want) {
		t.Fatalf("%d spans, want %d", len(got), len(want))
	}
	for i, w := range want {
		if got[i].Name != w.name || valueOf(got[i], "seckill.outcome") != w.outcome || got[i].Status.Code != w.status {
			t.Errorf("span %d is %s, %q, %v; want %+v", i, got[i].Name, valueOf(got[i], "seckill.outcome"), got[i].Status, w)
		}
	}
}
