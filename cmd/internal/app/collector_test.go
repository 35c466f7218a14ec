package app

import (
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	collected "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// collector takes traces as a real one does, by OTLP over HTTP.
type collector struct {
	*httptest.Server

	mu    sync.Mutex
	spans []*tracepb.Span
}

func newCollector(t *testing.T) *collector {
	c := &collector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var request collected.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &request)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s got what is no export of traces: %v", r.URL, err)
			return
		}
		c.take(&request)
	}))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) take(request *collected.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range request.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
}

func (c *collector) all() []*tracepb.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.spans[:len(c.spans):len(c.spans)]
}

// of returns the spans of one trace, by their names. The collector must have got them all.
func (c *collector) of(t *testing.T, trace string) map[string]*tracepb.Span {
	t.Helper()
	spans := map[string]*tracepb.Span{}
	for _, span := range c.all() {
		if hex.EncodeToString(span.TraceId) != trace {
			continue
		}
		if spans[span.Name] != nil {
			t.Errorf("two spans %s in one trace", span.Name)
		}
		spans[span.Name] = span
	}
	return spans
}
