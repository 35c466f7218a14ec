package board

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill/service"
	"seckill/service/idgen"
	"seckill/service/outbox"
)

// fakeShop is the database of a test.
type fakeShop struct {
	service.VoucherStore // what the board does not use

	mu       sync.Mutex
	vouchers map[idgen.ID]service.Voucher
	health   outbox.Health
	others   []service.Instance
	left     []string
	broken   error
	hangs    bool
	reads    int
}

func (s *fakeShop) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *fakeShop) put(v service.Voucher) {
	s.change(func() {
		if s.vouchers == nil {
			s.vouchers = map[idgen.ID]service.Voucher{}
		}
		s.vouchers[v.ID] = v
	})
}

func (s *fakeShop) enter(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads++
	if s.hangs {
		s.mu.Unlock()
		<-ctx.Done()
		s.mu.Lock()
		return ctx.Err()
	}
	return s.broken
}

func (s *fakeShop) Vouchers(ctx context.Context, _ idgen.ID, limit int) (found []service.Voucher, err error) {
	err = s.enter(ctx)
	s.change(func() {
		for _, v := range s.vouchers {
			v.ServerTime = time.Now()
			found = append(found, v)
		}
	})
	slices.SortFunc(found, func(a, b service.Voucher) int { return int(b.ID - a.ID) })
	return found[:min(len(found), limit)], err
}

func (s *fakeShop) Voucher(ctx context.Context, id idgen.ID) (service.Voucher, error) {
	err := s.enter(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := s.vouchers[id]
	if !ok {
		return v, errors.New("no such voucher")
	}
	v.ServerTime = time.Now()
	return v, err
}

func (s *fakeShop) Health(ctx context.Context, _ time.Duration) (outbox.Health, error) {
	err := s.enter(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.health, err
}

func (s *fakeShop) Report(ctx context.Context, name string, report []byte) ([]service.Instance, error) {
	err := s.enter(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]service.Instance{{Name: name, Report: report}}, s.others...), err
}

func (s *fakeShop) Leave(_ context.Context, name string) error {
	s.change(func() { s.left = append(s.left, name) })
	return nil
}

// voucher is on sale from begin on.
func voucher(id idgen.ID, stock, total int64, begin time.Time) service.Voucher {
	return service.Voucher{ID: id, Title: "voucher " + id.String(), Terms: service.Terms{
		Total: total, Stock: stock, Placed: total - stock, StartsAt: begin, EndsAt: begin.Add(time.Hour),
	}}
}

// newBoard is a board over a fake shop, which is not run yet.
func newBoard(shop *fakeShop, change func(*Config)) *Board {
	cfg := Config{Meter: NewMeter(), Instance: "me:1", Vouchers: shop, Outbox: shop, Registry: shop, Log: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&cfg)
	}
	return New(cfg)
}

// run runs it until the test, or the function that it returns, ends it.
func run(t *testing.T, b *Board) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.Run(ctx)
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

// screen is the connection of a viewer. Each write takes a while; one that takes longer than its deadline fails, as that
// of a socket whose other end does not read.
type screen struct {
	mu       sync.Mutex
	takes    time.Duration
	deadline time.Time
	header   http.Header
	got      bytes.Buffer
}

func (s *screen) Header() http.Header { return s.header }
func (s *screen) WriteHeader(int)     {}
func (s *screen) Flush()              {}

func (s *screen) SetReadDeadline(time.Time) error { return nil }

func (s *screen) SetWriteDeadline(at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deadline = at
	return nil
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	takes, left := s.takes, time.Until(s.deadline)
	s.mu.Unlock()
	if takes > left {
		time.Sleep(left)
		return 0, os.ErrDeadlineExceeded
	}
	time.Sleep(takes)
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got.Write(p)
}

// watcher is a viewer and what it knows.
type watcher struct {
	screen
	leave context.CancelFunc
	done  chan error
}

func watch(t *testing.T, b *Board, takes time.Duration, lastID string) *watcher {
	ctx, cancel := context.WithCancel(t.Context())
	w := &watcher{screen: screen{takes: takes, header: http.Header{}}, leave: cancel, done: make(chan error, 1)}
	r := httptest.NewRequestWithContext(ctx, "GET", "/api/v1/board/stream", nil)
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.done <- b.Stream(w, r)
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return w
}

// seen is what a viewer makes of the stream.
type seen struct {
	Snapshots int
	Changes   int
	ID        string
	Figures   map[string]int64
	Vouchers  []voucherView
	Instances []map[string]any
	Events    []Event
}

func (s seen) kinds() (kinds []Kind) {
	for _, e := range s.Events {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// read does what a browser does. before is what it knew from an earlier connection.
func (w *watcher) read(t *testing.T, before seen) seen {
	t.Helper()
	w.mu.Lock()
	text := w.got.String()
	w.mu.Unlock()
	state := before
	frame := func() (n int64) {
		_, _ = fmt.Sscanf(state.ID[strings.LastIndex(state.ID, "-")+1:], "%d", &n)
		return n
	}
	for _, message := range strings.Split(text, "\n\n") {
		var kind, data string
		last := frame()
		for _, line := range strings.Split(message, "\n") {
			name, value, _ := strings.Cut(line, ": ")
			switch name {
			case "event":
				kind = value
			case "data":
				data = value
			case "id":
				state.ID = value
			}
		}
		if data == "" {
			continue
		}
		if kind == "snapshot" {
			state = seen{Snapshots: state.Snapshots + 1, Changes: state.Changes, ID: state.ID}
		} else if state.Changes++; frame() != last+1 {
			t.Errorf("frame %d follows frame %d", frame(), last)
		}
		events := state.Events
		state.Events = nil
		if err := json.Unmarshal([]byte(data), &state); err != nil { // maps are merged, lists replaced
			t.Fatalf("%v: %s", err, data)
		}
		state.Events = append(events, state.Events...)
	}
	return state
}
