package handler_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"seckill/handler"
	"seckill/handler/apitest"
	"seckill/handler/board"
	"seckill/handler/token"
)

// newBoard returns a board that does not run, with the metrics of an idle shop.
func newBoard(maxViewers int) *board.Board {
	return board.New(board.Config{
		Metrics: prometheus.NewRegistry(), Instance: "a:1", Vouchers: &soldOutStore{}, Log: noLog(), MaxViewers: maxViewers,
	})
}

func TestBoard_Access(t *testing.T) {
	closed := newBoard(0)
	closed.Close() // streams are refused with 503, so that they end
	for _, c := range []struct {
		admins         bool
		who            []string
		status, stream int
	}{
		{false, nil, 200, 503},
		{true, nil, 401, 401},
		{true, as(t, 42, token.User), 403, 403},
		{true, as(t, 1, token.Admin), 200, 503},
	} {
		a := serve(t, newFakeShop(), func(cfg *handler.Config) { cfg.Board, cfg.BoardForAdmins = closed, c.admins })
		for path, status := range map[string]int{"/api/v1/board": c.status, "/api/v1/board/stream": c.stream} {
			if got := a.send("GET", path, "", c.who...); got.status != status {
				t.Errorf("%s, admins only %v, as %.20q: %d %s", path, c.admins, c.who, got.status, got.body)
			}
		}
	}
}

// An admin's stream ends when the token expires.
func TestBoard_StreamEndsWithToken(t *testing.T) {
	a := serve(t, newFakeShop(), func(cfg *handler.Config) { cfg.BoardForAdmins = true })
	expires := time.Now().Add(2 * time.Second).Truncate(time.Second)
	admin := sign(t, token.Claims{User: 1, Role: token.Admin, Expires: expires})
	got := a.send("GET", "/api/v1/board/stream", "", "Authorization", "Bearer "+admin)
	if got.status != 200 || !strings.Contains(got.body, "event: snapshot") {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if now := time.Now(); now.Before(expires) {
		t.Errorf("ended %v too early", expires.Sub(now))
	}
}

func TestBoard_StreamRefused(t *testing.T) {
	full := newBoard(1)
	a := serve(t, newFakeShop(), func(cfg *handler.Config) { cfg.Board = full })
	stream, err := http.Get(a.url + "/api/v1/board/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	expectBusy := func(text string) {
		t.Helper()
		got := a.send("GET", "/api/v1/board/stream", "")
		if got.status != 503 || got.header.Get("Retry-After") != "5" || !strings.Contains(got.body, `"code":"busy"`) || !strings.Contains(got.body, text) {
			t.Errorf("%d %v %s", got.status, got.header, got.body)
		}
	}
	expectBusy("maximum number of viewers")
	full.Close()
	expectBusy("shutting down")
	if _, err := io.Copy(io.Discard, stream.Body); err != nil {
		t.Errorf("the first stream: %v", err)
	}
}

func TestBoard_Marks(t *testing.T) {
	marked := newBoard(0)
	a := serve(t, newFakeShop(), func(cfg *handler.Config) { cfg.Board = marked })
	mark := func(text string, who ...string) int {
		return a.send("POST", "/api/v1/admin/board/marks", `{"text":"`+text+`"}`, who...).status
	}
	admin := as(t, 1, token.Admin)
	if got := mark("the master is killed", as(t, 42, token.User)...); got != 403 {
		t.Errorf("a user's mark: %d", got)
	}
	if got := []int{mark("主库已停", admin...), mark("", admin...), mark(strings.Repeat("é", 81), admin...)}; !slices.Equal(got, []int{204, 422, 422}) {
		t.Errorf("answers %v", got)
	}
	marked.Close() // publishes the mark
	if got := a.send("GET", "/api/v1/board", ""); strings.Count(got.body, `"kind":"mark"`) != 1 || !strings.Contains(got.body, "主库已停") {
		t.Errorf("%s", got.body)
	}
}

// openapi.yaml describes every kind of event of the stream.
func TestOpenAPI_BoardEvents(t *testing.T) {
	doc, err := apitest.Document()
	if err != nil {
		t.Fatal(err)
	}
	var described []string
	event := doc.Components.Schemas["Board"].Value.Properties["events"].Value.Items.Value
	for _, kind := range event.Properties["kind"].Value.Enum {
		described = append(described, kind.(string))
	}
	file, err := parser.ParseFile(gotoken.NewFileSet(), "board/timeline.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var known []string
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && fmt.Sprint(spec.Type) == "Kind" {
			known = append(known, strings.Trim(spec.Values[0].(*ast.BasicLit).Value, `"`))
		}
		return true
	})
	slices.Sort(described)
	slices.Sort(known)
	if len(known) < 20 || !slices.Equal(described, known) {
		t.Errorf("described: %q\nknown: %q", described, known)
	}
}
