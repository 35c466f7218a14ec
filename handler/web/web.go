// Package web serves the shop page, the live board and their files, which are embedded: plain HTML, CSS and JavaScript
// modules in the folder static. There is no build step, and the pages load nothing from other servers.
package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

//go:embed static
var embedded embed.FS

// Handler answers all requests outside the API: pages, their files, and a 404 page. It is safe for use by many goroutines.
type Handler struct {
	pages    map[string]*asset // by the path of the URL
	files    map[string]*asset // by name
	notFound []byte            // the page for unknown paths
	version  string
}

// filesPath and the version precede the names of files in URLs. The version is a hash of all files, so browsers may cache
// them forever and never mix two versions.
const filesPath = "/static/"

// New reads the embedded files.
func New() (*Handler, error) {
	static, err := fs.Sub(embedded, "static")
	if err != nil {
		return nil, err
	}
	return load(static)
}

// load serves index.html at "/", other HTML files at their name without the ending, and the rest below filesPath.
func load(static fs.FS) (*Handler, error) {
	contents, version, err := readAll(static)
	if err != nil {
		return nil, fmt.Errorf("web: %w", err)
	}
	h := &Handler{pages: map[string]*asset{}, files: map[string]*asset{}, version: version}
	for name, content := range contents {
		page, isPage := strings.CutSuffix(name, ".html")
		links := ""
		if isPage {
			links = preload(content, contents, filesPath+version+"/")
			content = bytes.ReplaceAll(content, []byte(`"`+filesPath), []byte(`"`+filesPath+version+"/"))
		}
		switch {
		case contentTypes[path.Ext(name)] == "":
			return nil, fmt.Errorf("web: %s: unknown file type", name)
		case page == "404":
			h.notFound = content
		case page == "index":
			h.pages["/"] = newAsset(name, content, links)
		case isPage:
			h.pages["/"+page] = newAsset(name, content, links)
		default:
			h.files[name] = newAsset(name, content, links)
		}
	}
	if h.pages["/"] == nil || h.notFound == nil {
		return nil, errors.New("web: index.html and 404.html are required")
	}
	return h, nil
}

// readAll reads all files and hashes their names and contents.
func readAll(static fs.FS) (contents map[string][]byte, version string, err error) {
	contents, sum := map[string][]byte{}, sha256.New()
	names, err := fs.Glob(static, "*") // sorted
	for _, name := range names {
		content, readErr := fs.ReadFile(static, name)
		err = errors.Join(err, readErr)
		contents[name] = content
		fmt.Fprintf(sum, "%s %d\n%s", name, len(content), content)
	}
	return contents, hex.EncodeToString(sum.Sum(nil)[:6]), err
}

// imported matches the module of a page and the imports of a module.
var imported = regexp.MustCompile(`(?m)<script type="module" src="/static/([^"]+)"|^import [^\n]* from '\./([^']+)'`)

// preload returns a Link header with all modules of a page, so that browsers request them at the same time.
func preload(page []byte, contents map[string][]byte, urlPrefix string) string {
	var links []string
	for texts := [][]byte{page}; len(texts) > 0; texts = texts[1:] {
		for _, match := range imported.FindAllSubmatch(texts[0], -1) {
			module := string(match[1]) + string(match[2])
			link := "<" + urlPrefix + module + ">; rel=modulepreload"
			if !slices.Contains(links, link) {
				links, texts = append(links, link), append(texts, contents[module])
			}
		}
	}
	return strings.Join(links, ", ")
}

// policy makes browsers refuse scripts, connections and frames of other servers, and markup that scripts make from text.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// Values of Cache-Control.
const (
	cacheForever = "public, max-age=31536000, immutable"
	revalidate   = "no-cache"
)

// ServeHTTP answers a request.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		header.Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD are allowed", http.StatusMethodNotAllowed)
		return
	}
	if a, cache := h.find(r.URL.Path); a != nil {
		header.Set("Cache-Control", cache)
		a.serve(w, r)
		return
	}
	header.Set("Cache-Control", revalidate)
	header.Set("Content-Type", contentTypes[".html"])
	w.WriteHeader(http.StatusNotFound)
	if r.Method != http.MethodHead {
		_, _ = w.Write(h.notFound) // an error means that the client is gone
	}
}

// find also returns files for a URL of another version: during a rolling update, a page of one instance may request files
// of another. Browsers do not cache those.
func (h *Handler) find(urlPath string) (a *asset, cache string) {
	rest, isFile := strings.CutPrefix(urlPath, filesPath)
	if !isFile {
		return h.pages[urlPath], revalidate
	}
	version, name := path.Split(rest)
	switch {
	case version == h.version+"/":
		return h.files[name], cacheForever
	case strings.Count(version, "/") <= 1:
		return h.files[name], revalidate
	default:
		return nil, ""
	}
}

// contentTypes are the types of all embedded files. mime.TypeByExtension depends on the machine.
var contentTypes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// asset is a file, plain and compressed.
type asset struct {
	contentType string
	links       string // a Link header, or ""
	hash        string
	plain, gzip []byte
}

func newAsset(name string, content []byte, links string) *asset {
	var compressed bytes.Buffer
	w := gzip.NewWriter(&compressed)
	_, _ = w.Write(content) // writing to a buffer does not fail
	_ = w.Close()
	hash := sha256.Sum256(content)
	return &asset{contentTypes[path.Ext(name)], links, hex.EncodeToString(hash[:8]), content, compressed.Bytes()}
}

// serve answers with 200, or with 304 if the client has the file already.
func (a *asset) serve(w http.ResponseWriter, r *http.Request) {
	body, tag := a.plain, a.hash
	if acceptsGzip(r.Header.Get("Accept-Encoding")) {
		body, tag = a.gzip, a.hash+"-gzip"
		w.Header().Set("Content-Encoding", "gzip")
	}
	w.Header().Set("Content-Type", a.contentType)
	w.Header().Set("Vary", "Accept-Encoding")
	if a.links != "" {
		w.Header().Set("Link", a.links)
	}
	w.Header().Set("ETag", `"`+tag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

// acceptsGzip implements RFC 9110, section 12.5.3, for gzip.
func acceptsGzip(accept string) bool {
	for coding := range strings.SplitSeq(accept, ",") {
		name, parameter, _ := strings.Cut(coding, ";")
		if !strings.EqualFold(strings.TrimSpace(name), "gzip") {
			continue
		}
		weight, given := strings.CutPrefix(strings.TrimSpace(parameter), "q=")
		q, err := strconv.ParseFloat(weight, 64)
		return !given || err == nil && q > 0
	}
	return false
}
