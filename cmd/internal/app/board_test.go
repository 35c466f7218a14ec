package app

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"seckill/handler/board"
	"seckill/handler/token"
	"seckill/repository/repotest/dbtest"
	"seckill/repository/repotest/redistest"
)

// boardState is what a viewer makes of the board's stream.
type boardState struct {
	Instance  string
	Figures   map[string]int64
	Instances []struct {
		Name string
		Lost bool
	}
	Events []struct{ Kind, What string }
}

// viewer is a client that watches the board of one instance.
type viewer struct {
	mu      sync.Mutex
	state   boardState
	changed chan struct{}
	ended   chan error
}

func watchBoard(t *testing.T, shop *App, bearer string) *viewer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, shop.URL()+"/api/v1/board/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+bearer)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if got := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || got != "text/event-stream" {
		t.Fatalf("%d %q", response.StatusCode, got)
	}
	v := &viewer{changed: make(chan struct{}, 1), ended: make(chan error, 1)}
	go func() {
		v.ended <- v.follow(response.Body)
		_ = response.Body.Close()
	}()
	return v
}

func (v *viewer) follow(stream io.Reader) error {
	lines := bufio.NewReader(stream)
	for {
		line, err := lines.ReadString('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			if err := v.take(data); err != nil {
				return err
			}
		}
	}
}

func (v *viewer) take(data string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	events := v.state.Events
	v.state.Events = nil
	err := json.Unmarshal([]byte(data), &v.state) // maps are merged, lists replaced
	v.state.Events = append(events, v.state.Events...)
	select {
	case v.changed <- struct{}{}:
	default:
	}
	return err
}

// until waits for the stream to say what is expected.
func (v *viewer) until(t *testing.T, what string, holds func(*boardState) bool) {
	t.Helper()
	deadline := time.After(2 * time.Minute)
	for {
		v.mu.Lock()
		ok := holds(&v.state)
		text := fmt.Sprintf("%+v", v.state)
		v.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-v.changed:
		case err := <-v.ended:
			t.Fatalf("the stream ended (%v) before %s", err, what)
		case <-deadline:
			t.Fatalf("%s: not so after two minutes: %s", what, text)
		}
	}
}

func (s *boardState) has(kind string) bool {
	return slices.ContainsFunc(s.Events, func(e struct{ Kind, What string }) bool { return e.Kind == kind })
}

// figureOf is where the board counts what a client saw. The last ones are for machines that are too slow.
var figureOf = map[string]string{
	"201": "placed", "200": "replayed", "sold-out": "sold_out", "already-ordered": "already_ordered", "in-progress": "in_progress",
	"unavailable": "unavailable", "outcome-unknown": "unknown",
}

// answerFigures are the board's counters of requests to place an order.
var answerFigures = []string{
	"placed", "replayed", "sold_out", "already_ordered", "in_progress", "outside", "mistaken", "busy", "unavailable", "unknown", "internal",
}

// The board counts each outcome of the metrics in one figure.
func TestBoard_CountsEveryOutcome(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	o := &observer{metrics: newMetrics(), log: log}
	for _, outcome := range orderOutcomes {
		o.Answered(outcome, time.Millisecond)
	}
	b := board.New(board.Config{Metrics: o.registry, Log: log}) // reads the metrics once
	var snapshot struct{ Figures map[string]int64 }
	if err := json.Unmarshal(b.Snapshot(), &snapshot); err != nil {
		t.Fatal(err)
	}
	for _, name := range answerFigures {
		want := cmp.Or(map[string]int64{"outside": 2, "mistaken": 3}[name], 1)
		if got := snapshot.Figures[name]; got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
}

// What the boards of two instances say about a sale is, to the last request, what its buyers saw.
func TestBoard_CountsWhatClientsSaw(t *testing.T) {
	dbtest.All(t, func(t *testing.T, target dbtest.Database) {
		const buyers, stock, duplicates = 400, 50, 3
		opts := optionsFor(t, target, redistest.Addr(t))
		shops := []*App{open(t, opts)}
		if target.Engine != dbtest.SQLite {
			shops = append(shops, open(t, opts))
		}
		admin := newBuyer(t, checked(t), shops[0].URL(), 1, token.Admin)
		var viewers []*viewer
		for _, shop := range shops {
			viewers = append(viewers, watchBoard(t, shop, admin.token))
		}
		voucher := admin.createVoucher(sale(stock, 1, time.Hour))
		admin.do(http.MethodPost, "/api/v1/admin/board/marks", map[string]string{"text": "here we go"}).mustBe(t, "204")
		counts := runBuyers(buyers, 32, func(i int) []answer {
			return atOnce(duplicates, func(copy int) answer {
				return newBuyer(t, fast, shops[copy%len(shops)].URL(), int64(i+1), token.User).place(voucher, userKey(i))
			})
		})
		want := map[string]int64{}
		for what, n := range counts {
			if figureOf[what] == "" {
				t.Fatalf("unexpected outcome %s", what)
			}
			want[figureOf[what]] = int64(n)
		}
		if want["placed"] != stock && want["unknown"] == 0 {
			t.Errorf("%d orders were placed", want["placed"])
		}
		mustAdd(t, viewers, want)
		viewers[0].until(t, "sold out, and the mark is there", func(s *boardState) bool {
			return s.Figures["stock"] == 0 && s.Figures["total"] == stock && s.has("sale-opened") && s.has("sold-out") && s.has("mark")
		})
		for _, v := range viewers {
			v.until(t, "every instance is there", func(s *boardState) bool { return len(s.Instances) == len(shops) })
		}
		mustSnapshot(t, admin, voucher)
	})
}

// mustAdd waits until the boards together say what clients saw, and nothing else.
func mustAdd(t *testing.T, viewers []*viewer, want map[string]int64) {
	t.Helper()
	counted := func() map[string]int64 {
		sum := map[string]int64{}
		for _, v := range viewers {
			v.mu.Lock()
			for _, name := range answerFigures {
				if n := v.state.Figures[name]; n > 0 {
					sum[name] += n
				}
			}
			v.mu.Unlock()
		}
		return sum
	}
	deadline := time.Now().Add(2 * time.Minute)
	for !maps.Equal(counted(), want) {
		if time.Now().After(deadline) {
			t.Fatalf("the boards say %v, clients saw %v", counted(), want)
		}
		select {
		case <-viewers[0].changed: // once a second at least
		case err := <-viewers[0].ended:
			t.Fatalf("the stream ended: %v", err)
		}
	}
}

// mustSnapshot checks the snapshot against the API's description, which the client does, and that it is up to date.
func mustSnapshot(t *testing.T, admin *buyer, voucher string) {
	t.Helper()
	a := admin.do(http.MethodGet, "/api/v1/board", nil).mustBe(t, "200")
	vouchers, _ := a.body["vouchers"].([]any)
	if len(vouchers) != 1 || vouchers[0].(map[string]any)["id"] != voucher || vouchers[0].(map[string]any)["state"] != "sold-out" {
		t.Errorf("vouchers %v", vouchers)
	}
}
