package handler_test

import (
	"context"
	"errors"
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

	"seckill/handler"
	"seckill/handler/apitest"
	"seckill/handler/board"
	"seckill/handler/token"
)

// fakeScreen streams one event, or refuses.
type fakeScreen struct {
	refusal error
	ended   chan error // if set, the stream lasts until its request is over, and says why here
	marks   []string
}

func (s *fakeScreen) Snapshot() []byte {
	return []byte(`{"instance":"a:1","id":"x-1","started_at":"2026-11-11T00:00:00Z","t":1,"figures":{"placed":1},
		"vouchers":[],"instances":[{"name":"a:1","self":true,"placed":1}],"events":[{"n":1,"t":0,"kind":"started"}],"history":{"t":[1]}}`)
}

func (s *fakeScreen) Stream(w http.ResponseWriter, r *http.Request) error {
	if s.refusal != nil {
		return s.refusal
	}
	if s.ended != nil {
		<-r.Context().Done()
		s.ended <- r.Context().Err()
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, err := io.WriteString(w, "data: {}\n\n")
	return err
}

func (s *fakeScreen) Mark(text string) { s.marks = append(s.marks, text) }

func TestWhoMayWatch(t *testing.T) {
	for _, c := range []struct {
		admins bool
		who    []string
		status int
	}{
		{false, nil, 200},
		{true, nil, 401},
		{true, as(t, 42, token.User), 403},
		{true, as(t, 1, token.Admin), 200},
	} {
		a := serve(t, newFakeShop(), func(cfg *handler.Config) { cfg.BoardForAdmins = c.admins })
		for _, path := range []string{"/api/v1/board", "/api/v1/board/stream"} {
			if got := a.send("GET", path, "", c.who...); got.status != c.status {
				t.Errorf("%s, admins only %v, as %.20q: %d %s", path, c.admins, c.who, got.status, got.body)
			}
		}
	}
}

// An admin watches for as long as the token says, not longer.
func TestStreamEndsWithItsToken(t *testing.T) {
	screen := &fakeScreen{ended: make(chan error, 1)}
	a := serve(t, newFakeShop(), func(cfg *handler.Config) { cfg.Board, cfg.BoardForAdmins = screen, true })
	expires := time.Now().Add(2 * time.Second)
	admin := sign(t, token.Claims{User: 1, Role: token.Admin, Expires: expires})
	if got := a.send("GET", "/api/v1/board/stream", "", "Authorization", "Bearer "+admin); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if err := <-screen.ended; !errors.Is(err, context.DeadlineExceeded) || time.Now().Before(expires.Truncate(time.Second)) {
		t.Errorf("ended by %v", err)
	}
}

func TestStreamIsRefused(t *testing.T) {
	for _, refusal := range []error{board.ErrFull, board.ErrClosed} {
		a := serve(t, newFakeShop(), func(cfg *handler.Config) { cfg.Board = &fakeScreen{refusal: fmt.Errorf("wrapped: %w", refusal)} })
		got := a.send("GET", "/api/v1/board/stream", "")
		if got.status != 503 || got.header.Get("Retry-After") != "5" || !strings.Contains(got.body, `"code":"busy"`) {
			t.Errorf("%v: %d %v %s", refusal, got.status, got.header, got.body)
		}
	}
}

func TestMarks(t *testing.T) {
	screen := &fakeScreen{}
	a := serve(t, newFakeShop(), func(cfg *handler.Config) { cfg.Board = screen })
	mark := func(text string, who ...string) int {
		return a.send("POST", "/api/v1/admin/board/marks", `{"text":"`+text+`"}`, who...).status
	}
	admin := as(t, 1, token.Admin)
	if got := mark("the master is killed", as(t, 42, token.User)...); got != 403 {
		t.Errorf("a user's mark: %d", got)
	}
	if got := []int{mark("主库已停", admin...), mark("", admin...), mark(strings.Repeat("é", 81), admin...)}; fmt.Sprint(got) != "[204 422 422]" {
		t.Errorf("answers %v", got)
	}
	if len(screen.marks) != 1 || screen.marks[0] != "主库已停" {
		t.Errorf("marks %q", screen.marks)
	}
}

// Whoever reads the stream knows every kind of event from the description.
func TestEveryKindOfEventIsDescribed(t *testing.T) {
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
