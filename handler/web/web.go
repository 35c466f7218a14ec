// Package web serves the shop page, the live board and their parts, which are embedded: plain HTML, styles and modules
// below static, as they are written. Nothing builds them, and they load nothing from elsewhere.
package web

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

//go:embed static
var embedded embed.FS

// Handler answers what no route of the API matches: pages, their parts, and a page of its own for what is not there. It
// is safe for use by many goroutines.
type Handler struct {
	pages   map[string]*asset // by the path of the URL
	parts   map[string]*asset // by the name of the file
	missing *asset
	version string
}

// Parts of a page are found under partsPath + version + "/". The version is a hash over all of them, so that browsers
// keep them for good, never mix those of two versions, and ask for nothing but the page when they come again.
const partsPath = "/static/"

// New reads the embedded files.
func New() (*Handler, error) {
	static, err := fs.Sub(embedded, "static")
	if err != nil {
		return nil, err
	}
	return load(static)
}

// load makes a page of each HTML file: index.html is "/", any other is at its name without the ending.
func load(files fs.FS) (*Handler, error) {
	contents, version, err := readAll(files)
	if err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	h := &Handler{pages: map[string]*asset{}, parts: map[string]*asset{}, version: version}
	for name, content := range contents {
		base, isPage := strings.CutSuffix(name, ".html")
		links := ""
		if isPage {
			links = preload(content, contents, version)
			content = bytes.ReplaceAll(content, []byte(`"`+partsPath), []byte(`"`+partsPath+version+"/"))
		}
		a, err := newAsset(name, content, links)
		switch {
		case err != nil:
			return nil, fmt.Errorf("web: %w", err)
		case name == "404.html":
			h.missing = a
		case name == "index.html":
			h.pages["/"] = a
		case isPage:
			h.pages["/"+base] = a
		default:
			h.parts[name] = a
		}
	}
	if h.pages["/"] == nil || h.missing == nil {
		return nil, fmt.Errorf("web: index.html and 404.html are needed")
	}
	return h, nil
}

// readAll reads every file, and draws the version from their names and contents.
func readAll(files fs.FS) (contents map[string][]byte, version string, err error) {
	contents, sum := map[string][]byte{}, sha256.New()
	entries, err := fs.ReadDir(files, ".") // sorted
	if err != nil {
		return nil, "", err
	}
	for _, entry := range entries {
		content, err := fs.ReadFile(files, entry.Name())
		if err != nil {
			return nil, "", err
		}
		contents[entry.Name()] = content
		fmt.Fprintf(sum, "%s %d\n%s", entry.Name(), len(content), content)
	}
	return contents, hex.EncodeToString(sum.Sum(nil)[:8]), nil
}

// policy has the browser see to it that a page runs nothing but this package's scripts, sends nothing to anybody but the
// shop, and can't be framed. Scripts can't turn text into markup.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// How long browsers may keep an answer without asking again.
const (
	forever   = "public, max-age=31536000, immutable"
	askAlways = "no-cache"
)

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "this is a page: only GET and HEAD", http.StatusMethodNotAllowed)
		return
	}
	if page := h.pages[r.URL.Path]; page != nil {
		page.serve(w, r, askAlways)
		return
	}
	if rest, ok := strings.CutPrefix(r.URL.Path, partsPath); ok {
		h.servePart(w, r, rest)
		return
	}
	h.missing.serveMissing(w, r)
}

// servePart also answers for another version: while instances are replaced, a page of one may ask the other. What it gets
// then is not kept.
func (h *Handler) servePart(w http.ResponseWriter, r *http.Request, rest string) {
	version, name := path.Split(rest)
	part := h.parts[name]
	switch {
	case part == nil || strings.Count(version, "/") > 1:
		h.missing.serveMissing(w, r)
	case version == h.version+"/":
		part.serve(w, r, forever)
	default:
		part.serve(w, r, askAlways)
	}
}
