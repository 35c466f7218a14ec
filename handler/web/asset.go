package web

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"
)

// types are what files may be. The system's table of types is not asked: it differs between machines.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// asset is a file in the forms in which it is sent.
type asset struct {
	contentType   string
	links         string // a Link header, or ""
	plain, zipped encoded
}

type encoded struct {
	body []byte
	etag string
}

func newAsset(name string, content []byte, links string) (*asset, error) {
	contentType := types[path.Ext(name)]
	if contentType == "" {
		return nil, fmt.Errorf("%s: files with this ending are not known here", name)
	}
	sum := sha256.Sum256(content)
	tag := hex.EncodeToString(sum[:8])
	var zipped bytes.Buffer
	w, err := gzip.NewWriterLevel(&zipped, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return &asset{
		contentType: contentType,
		links:       links,
		plain:       encoded{content, `"` + tag + `"`},
		zipped:      encoded{zipped.Bytes(), `"` + tag + `-gzip"`},
	}, nil
}

// serve answers a GET or HEAD, also one that asks whether what it has is still good.
func (a *asset) serve(w http.ResponseWriter, r *http.Request, cache string) {
	header := w.Header()
	header.Set("Cache-Control", cache)
	form := a.form(header, r)
	header.Set("ETag", form.etag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(form.body)) // no time: caches go by the ETag
}

// serveMissing answers 404 with the page that says so.
func (a *asset) serveMissing(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Cache-Control", askAlways)
	form := a.form(header, r)
	header.Set("Content-Length", strconv.Itoa(len(form.body)))
	w.WriteHeader(http.StatusNotFound)
	if r.Method != http.MethodHead {
		_, _ = w.Write(form.body) // fails only if the client is gone
	}
}

// form chooses how the asset is sent, and says so in the header.
func (a *asset) form(header http.Header, r *http.Request) encoded {
	header.Set("Content-Type", a.contentType)
	header.Set("Vary", "Accept-Encoding")
	if a.links != "" {
		header.Set("Link", a.links)
	}
	if acceptsGzip(r.Header.Get("Accept-Encoding")) {
		header.Set("Content-Encoding", "gzip")
		return a.zipped
	}
	return a.plain
}

// acceptsGzip is RFC 9110, section 12.5.3, as far as it concerns gzip by its name.
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
