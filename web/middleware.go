package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"path"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"ganglion/appliance"
)

// response is the writer of one answer. It remembers what was answered, for the
// access log and the metrics.
type response struct {
	http.ResponseWriter
	control *http.ResponseController
	id      string
	route   string // pattern of the route, never the path, which may hold anything
	status  int
	bytes   int64
	timeout time.Duration

	bodyRead bool // the request's body was read to its end
}

// Unwrap lets http.ResponseController find the connection.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *response) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write gives the client a fresh limit to read what is written: the time before,
// in which the server was at work, does not count.
func (w *response) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	w.limit()
	n, err := w.ResponseWriter.Write(b)
	w.bytes += int64(n)
	return n, err
}

func (w *response) limit() {
	// A writer without deadlines, as in a test, has none to keep.
	_ = w.control.SetWriteDeadline(time.Now().Add(w.timeout))
}

// json writes a whole JSON answer.
func (w *response) json(status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that left is found by its context
}

// serve is the way of every request.
func (s *Server) serve(hw http.ResponseWriter, r *http.Request) {
	start := s.cfg.Now()
	w := &response{ResponseWriter: hw, control: http.NewResponseController(hw), id: s.cfg.NewID(), timeout: s.cfg.WriteTimeout}
	// A deadline of the connection's last answer must not cut this one.
	_ = w.control.SetWriteDeadline(time.Time{})
	h := w.Header()
	h.Set("X-Request-Id", w.id)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("Cache-Control", "no-store")
	h.Set("Vary", "Origin")
	defer s.finish(w, r, start)
	s.dispatch(w, r)
}

// dispatch answers, and turns a panic into an internal error.
func (s *Server) dispatch(w *response, r *http.Request) {
	defer func() {
		v := recover()
		if v == nil {
			return
		}
		if v == http.ErrAbortHandler {
			panic(v) // net/http's way to cut a connection
		}
		fact := "value withheld" // a panic's text may hold a prompt
		if e, ok := v.(runtime.Error); ok {
			fact = e.Error()
		}
		s.cfg.Logger.Error("request panicked", slog.String("request_id", w.id), slog.String("panic", fact), slog.String("stack", string(debug.Stack())))
		if w.status != 0 {
			panic(http.ErrAbortHandler) // the answer is broken: do not let it look whole
		}
		s.refuse(w, &appliance.Error{Code: appliance.CodeInternal, Message: "internal error"})
	}()
	if err := s.guard(w, r); err != nil {
		s.refuse(w, err)
		return
	}
	if w.status != 0 {
		return // a preflight, answered by the guard
	}
	if r.URL.Path == "" || r.URL.Path[0] != '/' {
		s.refuse(w, appliance.Errorf(appliance.CodeNotFound, "", "there is no such route"))
		return
	}
	// Clients join addresses with one slash too many; a redirect would turn their
	// POST into a GET.
	r.URL.Path = path.Clean(r.URL.Path)
	s.router.ServeHTTP(w, r)
}

// finish writes the access log: what was asked of which route and how it ended,
// never a path, a query, a header or a body.
func (s *Server) finish(w *response, r *http.Request, start time.Time) {
	w.drain(r)
	route := w.route
	if route == "" {
		route = "other"
	}
	took := s.cfg.Now().Sub(start)
	s.metrics.request(route, r.Method, w.status)
	s.cfg.Logger.Info("request", slog.String("request_id", w.id), slog.String("method", method(r.Method)),
		slog.String("route", route), slog.Int("status", w.status), slog.Int64("bytes", w.bytes), slog.Duration("took", took))
}

// method keeps to the methods that exist: a client may send any word.
func method(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, http.MethodPatch:
		return m
	}
	return "other"
}

// guard refuses foreign hosts and origins, and answers preflights.
func (s *Server) guard(w *response, r *http.Request) error {
	if !s.knownHost(r) {
		return appliance.Errorf(appliance.CodeForbiddenHost, "", "this host name is not served; --allow-host adds one")
	}
	origins := r.Header.Values("Origin")
	if len(origins) == 0 {
		return s.guardEmbedded(r)
	}
	origin := origins[0]
	if len(origins) > 1 || !sameOrigin(origin, r.Host) && !s.origins[origin] {
		return appliance.Errorf(appliance.CodeForbiddenOrigin, "", "this origin may not call; --allow-origin adds one")
	}
	h := w.Header()
	if s.origins[origin] {
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", "X-Request-Id, Retry-After")
	}
	if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
		w.route = "preflight"
		h.Set("Access-Control-Allow-Methods", "GET, POST, PUT")
		h.Set("Access-Control-Allow-Headers", allowedHeaders(r.Header.Get("Access-Control-Request-Headers")))
		h.Set("Access-Control-Max-Age", "600")
		if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
			h.Set("Access-Control-Allow-Private-Network", "true")
		}
		w.WriteHeader(http.StatusNoContent)
	}
	return nil
}

// guardEmbedded refuses a request without Origin that a browser makes for a page
// of another site, such as an image address. Following a link to the page is
// fine, and so is a client that sends Sec-Fetch-Mode alone, as Node does.
func (s *Server) guardEmbedded(r *http.Request) error {
	site := r.Header.Get("Sec-Fetch-Site")
	if site != "cross-site" && site != "same-site" {
		return nil
	}
	if r.Header.Get("Sec-Fetch-Mode") == "navigate" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		return nil
	}
	return appliance.Errorf(appliance.CodeForbiddenOrigin, "", "a page of another site may not embed this address")
}

// sameOrigin tells whether an origin is this server as the request addressed it.
// The host is one that is served, which the caller has checked.
func sameOrigin(origin, host string) bool {
	scheme, rest, ok := strings.Cut(origin, "://")
	return ok && (scheme == "http" || scheme == "https") && strings.EqualFold(rest, host)
}

// allowedHeaders answers a preflight: an allowed origin may send any header, so
// the list repeats what is asked for as far as it is made of header names.
func allowedHeaders(asked string) string {
	allowed := []string{"Authorization", "Content-Type"}
	for _, name := range strings.Split(cut(asked, 2048), ",") {
		name = strings.TrimSpace(name)
		if name == "" || strings.EqualFold(name, "authorization") || strings.EqualFold(name, "content-type") {
			continue
		}
		if strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-_") == "" {
			allowed = append(allowed, name)
		}
	}
	return strings.Join(allowed, ", ")
}

// knownHost tells whether a request is addressed to a name that is served. A page
// of an attacker whose name resolves to this machine is stopped here, whatever it
// asks for. The port does not matter, since it may be mapped on the way.
func (s *Server) knownHost(r *http.Request) bool {
	name, ok := hostName(r.Host)
	if !ok {
		return false
	}
	if s.hosts[name] {
		return true
	}
	// The address itself cannot be a name of somebody else's.
	local, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	if !ok {
		return false
	}
	addr, err := netip.ParseAddr(name)
	return err == nil && addr == local.AddrPort().Addr().Unmap()
}

// hostName is the name in a Host header, in lower case and without its port.
func hostName(host string) (string, bool) {
	name, port := host, ""
	switch i := strings.LastIndexByte(host, ':'); {
	case strings.HasPrefix(host, "["):
		end := strings.IndexByte(host, ']')
		if end < 0 || end+1 < len(host) && host[end+1] != ':' {
			return "", false
		}
		addr, err := netip.ParseAddr(host[1:end])
		if err != nil || !addr.Is6() {
			return "", false
		}
		if end+1 < len(host) && host[end+2:] == "" {
			return "", false
		}
		name, port = addr.String(), strings.TrimPrefix(host[end+1:], ":")
	case i >= 0:
		name, port = host[:i], host[i+1:]
		if port == "" {
			return "", false
		}
	}
	if port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return "", false
		}
	}
	return strings.ToLower(name), name != ""
}

// secret is a key as its digest, so that comparing takes the same time for every
// length and content.
type secret struct {
	sum [sha256.Size]byte
	set bool
}

func newSecret(key string) secret { return secret{sum: sha256.Sum256([]byte(key)), set: key != ""} }

func (s secret) equals(key string) bool {
	sum := sha256.Sum256([]byte(key))
	return s.set && subtle.ConstantTimeCompare(s.sum[:], sum[:]) == 1
}

// authorised tells whether a request may use a route.
func (s *Server) authorised(r *http.Request, a access) bool {
	needed := a != open && s.key.set || a == management && s.token.set
	if !needed {
		return true
	}
	scheme, given, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return false
	}
	given = strings.TrimSpace(given)
	byKey, byToken := s.key.equals(given), s.token.equals(given)
	return byKey || byToken
}
