package handler_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"seckill/handler"
	"seckill/handler/apitest"
	"seckill/service"
)

func TestOpenAPI_Routes(t *testing.T) {
	doc, err := apitest.Document()
	if err != nil {
		t.Fatal(err)
	}
	var described, routed []string
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			described = append(described, method+" "+path)
		}
	}
	param := regexp.MustCompile(`:(\w+)`)
	for _, route := range newHandler(t, newFakeShop(), nil).Routes() {
		routed = append(routed, route.Method+" "+param.ReplaceAllString(route.Path, "{$1}"))
	}
	slices.Sort(described)
	slices.Sort(routed)
	if !slices.Equal(described, routed) {
		t.Errorf("described:\n%s\nrouted:\n%s", strings.Join(described, "\n"), strings.Join(routed, "\n"))
	}
}

func TestOpenAPI_Codes(t *testing.T) {
	doc, err := apitest.Document()
	if err != nil {
		t.Fatal(err)
	}
	var described []service.Code
	for _, code := range doc.Components.Schemas["Problem"].Value.Properties["code"].Value.Enum {
		described = append(described, service.Code(code.(string)))
	}
	slices.Sort(described)
	known := slices.Sorted(maps.Keys(handler.StatusOf()))
	if !slices.Equal(described, known) {
		t.Errorf("described: %q\nknown: %q", described, known)
	}
	for code, status := range handler.StatusOf() {
		row := fmt.Sprintf("| `%s` | %d | ", code, status)
		if !strings.Contains(doc.Info.Description, row) {
			t.Errorf("the table of codes has no row that begins %q", row)
		}
	}
}

// Every error status of an operation lists its codes.
func TestOpenAPI_CodesOfStatus(t *testing.T) {
	doc, err := apitest.Document()
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`([a-z-]+)`")
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			for status, response := range operation.Responses.Map() {
				if status < "400" || strings.HasPrefix(path, "/docs") {
					continue
				}
				codes := 0
				for _, match := range named.FindAllStringSubmatch(*response.Value.Description, -1) {
					if want, ok := handler.StatusOf()[service.Code(match[1])]; ok && strconv.Itoa(want) == status {
						codes++
					}
				}
				if codes == 0 {
					t.Errorf("%s %s: %s names no code of this status", method, path, status)
				}
			}
		}
	}
}

// A code of package service without a status would be answered as an internal error.
func TestProblem_StatusOfEveryServiceCode(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../service/error.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Code") || len(spec.Values) != 1 {
			return true
		}
		literal, ok := spec.Values[0].(*ast.BasicLit)
		if !ok {
			return true
		}
		code, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		found++
		if handler.StatusOf()[service.Code(code)] == 0 {
			t.Errorf("%s has no status", code)
		}
		return true
	})
	if found < 10 {
		t.Fatalf("found only %d codes: is this the file?", found)
	}
}

func TestOpenAPI_IsServed(t *testing.T) {
	a := serve(t, newFakeShop(), nil)
	got := a.send("GET", "/openapi.yaml", "")
	if got.status != 200 || !bytes.Equal([]byte(got.body), handler.OpenAPI()) {
		t.Errorf("%d, %d bytes", got.status, len(got.body))
	}
}

// The page loads files of this server only, and its policy makes the browser refuse others.
func TestDocs_LoadOnlyLocalFiles(t *testing.T) {
	a := serve(t, newFakeShop(), nil)
	if got := a.send("GET", "/docs", ""); got.status != 301 || got.header.Get("Location") != "/docs/" {
		t.Errorf("/docs: %d to %q", got.status, got.header.Get("Location"))
	}
	page := a.send("GET", "/docs/", "")
	if page.status != 200 || !strings.Contains(page.body, `"/openapi.yaml"`) {
		t.Fatalf("%d %s", page.status, page.body)
	}
	policy := page.header.Get("Content-Security-Policy")
	if !strings.HasPrefix(policy, "default-src 'self';") || strings.Contains(policy, "http") || strings.Contains(policy, "*") {
		t.Errorf("policy %q", policy)
	}
	loaded := regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(page.body, -1)
	if len(loaded) < 3 {
		t.Fatalf("the page loads only %q", loaded)
	}
	for _, link := range loaded {
		if !strings.HasPrefix(link[1], "/docs/") {
			t.Errorf("the page loads %s", link[1])
			continue
		}
		if got := a.send("GET", link[1], ""); got.status != 200 || len(got.body) < 100 {
			t.Errorf("%s: %d, %d bytes", link[1], got.status, len(got.body))
		}
	}
	if got := a.send("GET", "/docs/nothing.js", ""); got.status != 404 {
		t.Errorf("an unknown part: %d", got.status)
	}
}
