package web

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

func get(t *testing.T, h http.Handler, method, path string, header ...string) *http.Response {
	t.Helper()
	request := httptest.NewRequest(method, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, request)
	return recorder.Result()
}

func body(t *testing.T, response *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func shop(t *testing.T) *Handler {
	t.Helper()
	h, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Every answer has the policy.
func TestServe_Policy(t *testing.T) {
	h := shop(t)
	for _, path := range []string{"/", "/static/base.css", "/nothing", "/static/nothing.js"} {
		for name, want := range map[string]string{
			"Content-Security-Policy": policy, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		} {
			if got := get(t, h, "GET", path).Header.Get(name); got != want {
				t.Errorf("%s: %s is %q", path, name, got)
			}
		}
	}
	for _, lax := range []string{"unsafe-inline", "unsafe-eval", "data:", "http:", "*"} {
		if strings.Contains(policy, lax) {
			t.Errorf("the policy allows %s", lax)
		}
	}
}

func TestServe_Paths(t *testing.T) {
	h := shop(t)
	for _, c := range []struct {
		method, path string
		status       int
		contentType  string
		cache        string
	}{
		{"GET", "/", 200, "text/html; charset=utf-8", revalidate},
		{"HEAD", "/", 200, "text/html; charset=utf-8", revalidate},
		{"GET", "/static/" + h.version + "/shop.js", 200, "text/javascript; charset=utf-8", cacheForever},
		{"HEAD", "/static/" + h.version + "/base.css", 200, "text/css; charset=utf-8", cacheForever},
		{"GET", "/static/another/shop.js", 200, "text/javascript; charset=utf-8", revalidate},
		{"GET", "/static/icon.svg", 200, "image/svg+xml", revalidate},
		{"GET", "/nothing", 404, "text/html; charset=utf-8", revalidate},
		{"HEAD", "/nothing", 404, "text/html; charset=utf-8", revalidate},
		{"GET", "/index.html", 404, "text/html; charset=utf-8", revalidate},
		{"GET", "/static/", 404, "text/html; charset=utf-8", revalidate},
		{"GET", "/static/index.html", 404, "text/html; charset=utf-8", revalidate},
		{"GET", "/static/../web.go", 404, "text/html; charset=utf-8", revalidate},
		{"GET", "/static/a/b/shop.js", 404, "text/html; charset=utf-8", revalidate},
		{"POST", "/", 405, "text/plain; charset=utf-8", ""},
	} {
		response := get(t, h, c.method, c.path)
		text := body(t, response)
		if response.StatusCode != c.status || response.Header.Get("Content-Type") != c.contentType || response.Header.Get("Cache-Control") != c.cache {
			t.Errorf("%s %s: %d, %s, %q", c.method, c.path, response.StatusCode, response.Header.Get("Content-Type"), response.Header.Get("Cache-Control"))
		}
		if c.method == "HEAD" == (text != "") || c.status == 405 && response.Header.Get("Allow") != "GET, HEAD" {
			t.Errorf("%s %s: a body of %d bytes, Allow %q", c.method, c.path, len(text), response.Header.Get("Allow"))
		}
	}
}

// An unchanged file is not sent again. The compressed file has its own ETag.
func TestServe_NotModified(t *testing.T) {
	h := shop(t)
	tags := map[string]bool{}
	for _, accept := range []string{"", "gzip"} {
		first := get(t, h, "GET", "/", "Accept-Encoding", accept)
		tag := first.Header.Get("ETag")
		if tags[tag] || tag == "" || first.Header.Get("Vary") != "Accept-Encoding" {
			t.Errorf("tag %q, Vary %q", tag, first.Header.Get("Vary"))
		}
		tags[tag] = true
		again := get(t, h, "GET", "/", "Accept-Encoding", accept, "If-None-Match", tag)
		if again.StatusCode != http.StatusNotModified || body(t, again) != "" || again.Header.Get("Content-Security-Policy") == "" {
			t.Errorf("with the tag: %d", again.StatusCode)
		}
		if other := get(t, h, "GET", "/", "Accept-Encoding", accept, "If-None-Match", `"other"`); other.StatusCode != http.StatusOK {
			t.Errorf("with another tag: %d", other.StatusCode)
		}
	}
}

func TestServe_Compression(t *testing.T) {
	h := shop(t)
	plain := body(t, get(t, h, "GET", "/"))
	for accept, want := range map[string]string{
		"": "", "identity": "", "br": "", "gzip;q=0": "", "gzip;q=nonsense": "", "xgzip": "",
		"gzip": "gzip", "GZIP": "gzip", "br, gzip;q=0.5": "gzip", "gzip ; q=1": "gzip", "deflate,gzip": "gzip",
	} {
		response := get(t, h, "GET", "/", "Accept-Encoding", accept)
		if got := response.Header.Get("Content-Encoding"); got != want {
			t.Errorf("%q gets %q", accept, got)
			continue
		}
		text := body(t, response)
		if want == "gzip" {
			r, err := gzip.NewReader(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			unzipped, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			text = string(unzipped)
		}
		if text != plain {
			t.Errorf("%q gets something else", accept)
		}
	}
}

// All files that a page references exist, with the version in their URL. The policy would block inline scripts and styles.
func TestPages_References(t *testing.T) {
	h := shop(t)
	reference := regexp.MustCompile(`(?:href|src)="(/static/[^"]*)"`)
	preloaded := regexp.MustCompile(`<([^>]+)>; rel=modulepreload`)
	inline := regexp.MustCompile(`(?i)<script(?:\s[^>]*)?>[^<]|<style|\sstyle=|\son\w+=|javascript:|https?://`)
	for path, page := range h.pages {
		text := string(page.plain)
		references := reference.FindAllStringSubmatch(text, -1)
		references = append(references, preloaded.FindAllStringSubmatch(page.links, -1)...)
		if len(references) < 4 {
			t.Errorf("%s has %d parts, which can't be right", path, len(references))
		}
		for _, r := range references {
			if response := get(t, h, "GET", r[1]); response.StatusCode != 200 || response.Header.Get("Cache-Control") != cacheForever {
				t.Errorf("%s needs %s: %d, %q", path, r[1], response.StatusCode, response.Header.Get("Cache-Control"))
			}
		}
		if found := inline.FindString(text); found != "" {
			t.Errorf("%s has %q", path, found)
		}
	}
}

// A page preloads all modules that its script imports, directly or not.
func TestPages_PreloadModules(t *testing.T) {
	h, err := load(fstest.MapFS{
		"index.html": {Data: []byte(`<script type="module" src="/static/a.js"></script>`)}, "404.html": {Data: []byte("missing")},
		"a.js": {Data: []byte("import { x } from './b.js'\nimport y from './c.js'\n")},
		"b.js": {Data: []byte("import { z } from './d.js'\n")}, "c.js": {Data: []byte("import './d.js'\nimport z from './a.js'")},
		"d.js": {}, "unused.js": {},
	})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, name := range []string{"a", "b", "c", "d"} {
		want = append(want, "</static/"+h.version+"/"+name+".js>; rel=modulepreload")
	}
	if got := get(t, h, "GET", "/").Header.Get("Link"); got != strings.Join(want, ", ") {
		t.Errorf("Link: %s", got)
	}
}

// Modules do not import each other in a circle.
func TestModules_NoImportCircle(t *testing.T) {
	imported := regexp.MustCompile(`(?m)^import [^\n]* from '\./([^']+)'`)
	names, err := fs.Glob(embedded, "static/*.js")
	if err != nil || len(names) < 10 {
		t.Fatalf("%q %v", names, err)
	}
	done := map[string]bool{}
	var follow func(module string, path []string)
	follow = func(module string, path []string) {
		if slices.Contains(path, module) {
			t.Errorf("import circle: %q", append(path, module))
			return
		}
		if done[module] {
			return
		}
		for _, match := range imported.FindAllStringSubmatch(read(t, module), -1) {
			follow(match[1], append(path, module))
		}
		done[module] = true
	}
	for _, name := range names {
		follow(strings.TrimPrefix(name, "static/"), nil)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	content, err := embedded.ReadFile("static/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// The version depends on names and contents of all files.
func TestLoad_Version(t *testing.T) {
	files := func() fstest.MapFS {
		return fstest.MapFS{"index.html": {Data: []byte(`"/static/x.js"`)}, "404.html": {Data: []byte("missing")}, "x.js": {Data: []byte("1")}}
	}
	version := func(files fs.FS) string {
		h, err := load(files)
		if err != nil {
			t.Fatal(err)
		}
		if page := h.pages["/"].plain; !bytes.Contains(page, []byte(`"/static/`+h.version+`/x.js"`)) {
			t.Errorf("the page says %s", page)
		}
		return h.version
	}
	same, changed, renamed := files(), files(), files()
	changed["x.js"] = &fstest.MapFile{Data: []byte("2")}
	renamed["y.js"] = renamed["x.js"]
	delete(renamed, "x.js")
	versions := []string{version(files()), version(changed), version(renamed)}
	if version(same) != versions[0] || versions[0] == versions[1] || versions[0] == versions[2] {
		t.Errorf("versions %q, and %q for the same files", versions, version(same))
	}
}

func TestLoad_RefusedFiles(t *testing.T) {
	for name, files := range map[string]fstest.MapFS{
		"no 404.html":    {"index.html": {}},
		"no index.html":  {"404.html": {Data: []byte("missing")}},
		"unknown ending": {"index.html": {}, "404.html": {Data: []byte("missing")}, "x.exe": {}},
	} {
		if _, err := load(files); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
