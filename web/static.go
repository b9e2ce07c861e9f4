package web

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"

	"ganglion/appliance"
)

// contentPolicy allows what the server itself sends and nothing else: no inline
// script or style, no other host, no frame around the page.
// The previews of attached sound and film are blobs that the page itself made.
const contentPolicy = "default-src 'self'; media-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; object-src 'none'"

// asset is a file of the page.
type asset struct {
	body []byte
	mime string
	etag string
}

// mimes are the types of the page's files. The system's table is not asked: on
// some systems it calls a script plain text, which nosniff then refuses to run.
var mimes = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".mjs":  "text/javascript; charset=utf-8",
	".json": "application/json",
	".svg":  "image/svg+xml",
	".png":  "image/png",
	".ico":  "image/x-icon",
	".txt":  "text/plain; charset=utf-8",
	".md":   "text/plain; charset=utf-8",
}

// loadAssets reads the page once.
func loadAssets(files fs.FS) (map[string]asset, error) {
	assets := map[string]asset{}
	if files == nil {
		return assets, nil
	}
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		mime, ok := mimes[path.Ext(name)]
		if !ok {
			return nil // not part of a page
		}
		body, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		assets[name] = asset{body: body, mime: mime, etag: `"` + base64.RawURLEncoding.EncodeToString(sum[:15]) + `"`}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("web: page: %w", err)
	}
	return assets, nil
}

// page serves the page and its files; everything else is not there. Browsers ask
// each time whether a file is still the same, which costs one small answer on the
// machine itself: names carry no version, so a longer trust would show an old page
// after an update.
func (s *Server) page(w *response, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if name == "" {
		name = "index.html"
	}
	a, ok := s.assets[name]
	if !ok || r.Method != http.MethodGet && r.Method != http.MethodHead {
		s.refuse(w, appliance.Errorf(appliance.CodeNotFound, "", "there is no such route"))
		return
	}
	w.route = "page"
	h := w.Header()
	h.Set("Content-Type", a.mime)
	h.Set("ETag", a.etag)
	h.Set("Cache-Control", "no-cache")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(a.body))
}
