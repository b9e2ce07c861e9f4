package web

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
)

// raw sends bytes as they are, for requests that Go's client would not make.
func (b *bench) raw(request string) (*http.Response, string) {
	b.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.url, "http://"))
	if err != nil {
		b.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		b.t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, _ := io.ReadAll(resp.Body) // a cut body shows in what is compared
	return resp, string(data)
}

func TestF79OnlyKnownHostsAreServed(t *testing.T) {
	b := start(t, scripted("x"))
	port := b.url[strings.LastIndexByte(b.url, ':'):]
	routes := []string{"POST /v1/completions", "GET /v1/models", "GET /health", "GET /metrics", "GET /openapi.json", "GET /", "GET /nowhere",
		"OPTIONS /v1/completions", "OPTIONS *", "HEAD /", "DELETE /v1/log/x", "GET /v1/log", "PUT /v1/models/files/a.gguf", "BREW /coffee"}
	for _, host := range []string{"evil.example", "127.0.0.1.evil.example", "localhost.evil.example", ":8080", "", "evil.example" + port,
		"localhost.", "localhost:", "localhost:x", "localhost:0", "localhost:99999", "[::1", "[::1]x", "::1", "[127.0.0.1]", "127.0.0.2", "user@localhost", "[::1]:"} {
		for _, route := range routes {
			resp, body := b.raw(route + " HTTP/1.1\r\nHost: " + host + "\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
			if resp.StatusCode != 403 && !(resp.StatusCode == 400 && strings.HasPrefix(body, "400 Bad Request: malformed Host")) {
				t.Errorf("Host %q, %s: %d %s", host, route, resp.StatusCode, body)
			}
		}
	}
	for _, host := range []string{"[::1]" + port, "LOCALHOST", "127.0.0.1" + port, "localhost" + port, "127.0.0.1", "[::1]", "[0:0:0:0:0:0:0:1]:80"} {
		if r := b.do("GET", "/health", "", "Host", host); r.status != 200 {
			t.Errorf("Host %q: %d %s", host, r.status, r.body)
		}
	}
	wantError(t, b.do("POST", "/v1/completions", `{"prompt":"a"}`, "Host", "evil.example"), 403, "forbidden_host", "")
	// The absolute form of a request line names the host instead of the header.
	if resp, _ := b.raw("GET http://evil.example/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); resp.StatusCode != 403 {
		t.Errorf("absolute form: %d", resp.StatusCode)
	}
}

func TestConfiguredHostsAreServed(t *testing.T) {
	b := start(t, setup{config: Config{Listen: "box.lan:8080", Key: "k", AllowedHosts: []string{"Other.example"}}})
	for host, want := range map[string]int{"box.lan:8080": 200, "OTHER.example": 200, "third.example": 403} {
		if r := b.do("GET", "/health", "", "Host", host); r.status != want {
			t.Errorf("Host %q: %d, want %d", host, r.status, want)
		}
	}
	// The address that was connected to is served, and only that one.
	s := b.server
	for host, want := range map[string]bool{"192.0.2.7:8080": true, "192.0.2.8:8080": false, "[2001:db8::1]": false} {
		r := httptest.NewRequest("GET", "/health", nil)
		r.Host = host
		local := &net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 8080}
		r = r.WithContext(withLocal(r, local))
		if got := s.knownHost(r); got != want {
			t.Errorf("Host %q at %v: %v, want %v", host, local, got, want)
		}
	}
}

func TestF40AllowedOriginsWorkFully(t *testing.T) {
	const origin = "http://127.0.0.1:5173"
	b := start(t, setup{script: appliancetest.Script{Pieces: []string{"x"}}, config: Config{AllowedOrigins: []string{origin}, Key: "k"}})
	once := func(r reply, want string) {
		t.Helper()
		got := r.header.Values("Access-Control-Allow-Origin")
		if want == "" && len(got) != 0 || want != "" && (len(got) != 1 || got[0] != want) {
			t.Errorf("Access-Control-Allow-Origin %q, want %q", got, want)
		}
		if r.header.Get("Access-Control-Allow-Credentials") != "" || r.header.Get("Vary") != "Origin" {
			t.Errorf("headers %v", r.header)
		}
	}
	preflight := b.do("OPTIONS", "/v1/completions", "", "Origin", origin, "Access-Control-Request-Method", "POST",
		"Access-Control-Request-Headers", "authorization,content-type,x-stainless-os")
	once(preflight, origin)
	if preflight.status != 204 || !strings.Contains(preflight.header.Get("Access-Control-Allow-Methods"), "POST") {
		t.Errorf("preflight %d %v", preflight.status, preflight.header)
	}
	for _, h := range []string{"Authorization", "Content-Type", "x-stainless-os"} {
		if !strings.Contains(preflight.header.Get("Access-Control-Allow-Headers"), h) {
			t.Errorf("no %s in %v", h, preflight.header)
		}
	}
	for body, status := range map[string]int{`{"prompt":"a"}`: 200, `{"prompt":"a","stream":true}`: 200, `{`: 400} {
		r := b.complete(body, "Origin", origin, "Authorization", "Bearer k")
		if r.status != status {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
		once(r, origin)
	}
	unauthorised := b.complete(`{"prompt":"a"}`, "Origin", origin)
	wantError(t, unauthorised, 401, "invalid_api_key", "")
	once(unauthorised, origin)
	for _, other := range []string{"http://evil.example", "null", "http://127.0.0.1:5174", "https://127.0.0.1:5173", origin + "/", "HTTP://127.0.0.1:5173", ""} {
		for _, method := range []string{"OPTIONS", "POST", "GET"} {
			r := b.do(method, "/v1/completions", "", "Origin", other, "Access-Control-Request-Method", "POST", "Authorization", "Bearer k")
			wantError(t, r, 403, "forbidden_origin", "")
			once(r, "")
		}
	}
	own := b.complete(`{"prompt":"a"}`, "Origin", b.url, "Authorization", "Bearer k")
	if own.status != 200 {
		t.Errorf("the page's own origin: %d", own.status)
	}
	once(own, "")

	none := start(t, setup{noModel: true, config: Config{AllowedOrigins: []string{origin}}})
	r := none.complete(`{"prompt":"a"}`, "Origin", origin)
	wantError(t, r, 503, "no_model", "")
	once(r, origin)
	if r.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}

func TestBrowserRequestsWithoutOrigin(t *testing.T) {
	b := start(t, scripted("x"))
	tests := []struct {
		method, path string
		header       []string
		want         int
	}{
		{"POST", "/v1/completions", []string{"Sec-Fetch-Mode", "cors"}, 200}, // Node's fetch
		{"GET", "/health", []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Mode", "cors"}, 200},
		{"GET", "/health", []string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate"}, 200},
		{"GET", "/health", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, 200},
		{"GET", "/health", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		{"GET", "/metrics", []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		{"POST", "/v1/completions", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, 403},
	}
	for _, tt := range tests {
		body := ""
		if tt.method == "POST" {
			body = `{"prompt":"a"}`
		}
		if r := b.do(tt.method, tt.path, body, tt.header...); r.status != tt.want {
			t.Errorf("%s %s %v: %d, want %d", tt.method, tt.path, tt.header, r.status, tt.want)
		}
	}
}

func TestKeysAndTokens(t *testing.T) {
	management := []string{"GET /v1/status", "GET /v1/log", "GET /v1/log/x", "GET /v1/models/found", "POST /v1/models/load", "PUT /v1/models/files/a.gguf",
		"GET /v1/plugins", "POST /v1/plugins/clear", "PUT /v1/plugins/files/a.wasm"}
	callers := []string{"POST /v1/completions", "GET /v1/models", "POST /v1/tokenize", "POST /v1/detokenize", "GET /v1/tokens", "GET /metrics"}
	openRoutes := []string{"GET /health", "GET /healthz", "GET /openapi.json", "OPTIONS /v1/log"}
	tests := []struct {
		name                         string
		config                       Config
		header                       string
		open, caller, managementOpen bool
	}{
		{"nothing set", Config{}, "", true, true, true},
		{"nothing set, any key", Config{}, "Bearer dummy", true, true, true},
		{"key missing", Config{Key: "k"}, "", true, false, false},
		{"key wrong", Config{Key: "k"}, "Bearer K", true, false, false},
		{"key cut", Config{Key: "long key"}, "Bearer long", true, false, false},
		{"key of another scheme", Config{Key: "k"}, "Basic k", true, false, false},
		{"key right", Config{Key: "k"}, "bearer k", true, true, true},
		{"token missing", Config{Token: "t"}, "", true, true, false},
		{"token wrong", Config{Token: "t"}, "Bearer x", true, true, false},
		{"token right", Config{Token: "t"}, "Bearer t", true, true, true},
		{"token beside a key", Config{Token: "t", Key: "k"}, "Bearer t", true, true, true},
		{"key beside a token", Config{Token: "t", Key: "k"}, "Bearer k", true, true, true},
		{"empty key", Config{Key: "k"}, "Bearer ", true, false, false},
	}
	for _, tt := range tests {
		b := start(t, setup{config: tt.config})
		check := func(routes []string, want bool) {
			for _, route := range routes {
				method, path, _ := strings.Cut(route, " ")
				r := b.do(method, path, "", "Authorization", tt.header)
				if got := r.status != 401; got != want {
					t.Errorf("%s: %s: status %d, want open %v", tt.name, route, r.status, want)
				}
				if r.status == 401 && r.header.Get("WWW-Authenticate") == "" {
					t.Errorf("%s: %s: no WWW-Authenticate", tt.name, route)
				}
			}
		}
		check(openRoutes, tt.open)
		check(callers, tt.caller)
		check(management, tt.managementOpen)
	}
	b := start(t, setup{config: Config{Key: "k"}})
	if r := b.do("GET", "/health", ""); strings.Contains(r.body, "scripted") || r.body != `{"status":"ok"}` {
		t.Errorf("health without key tells %s", r.body)
	}
	if r := b.do("GET", "/health", "", "Authorization", "Bearer k"); !strings.Contains(r.body, `"model":"scripted"`) {
		t.Errorf("health with key tells %s", r.body)
	}
}

func TestConfigIsValidated(t *testing.T) {
	good := Config{Completer: FromService(nil), Status: func() appliance.Status { return appliance.Status{} }}
	with := func(f func(*Config)) Config { c := good; f(&c); return c }
	tests := []struct {
		name   string
		config Config
		want   string // "" = valid
	}{
		{"least", good, ""},
		{"no completer", Config{}, "Completer"},
		{"open to all", with(func(c *Config) { c.Listen = "0.0.0.0:8080" }), "--listen"},
		{"open to all by name", with(func(c *Config) { c.Listen = "box.lan:8080" }), "--listen"},
		{"open to all, no host", with(func(c *Config) { c.Listen = ":8080" }), "--listen"},
		{"open to all with a key", with(func(c *Config) { c.Listen, c.Key = "0.0.0.0:8080", "k" }), ""},
		{"loopback six", with(func(c *Config) { c.Listen = "[::1]:0" }), ""},
		{"loopback by name", with(func(c *Config) { c.Listen = "Localhost:80" }), ""},
		{"no port", with(func(c *Config) { c.Listen = "127.0.0.1" }), "--listen"},
		{"wildcard origin", with(func(c *Config) { c.AllowedOrigins = []string{"*"} }), "--allow-origin"},
		{"origin with path", with(func(c *Config) { c.AllowedOrigins = []string{"http://a/b"} }), "--allow-origin"},
		{"host with port", with(func(c *Config) { c.AllowedHosts = []string{"a:80"} }), "--allow-host"},
	}
	for _, tt := range tests {
		_, err := New(tt.config)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: error %v, want one about %q", tt.name, err, tt.want)
		}
	}
}

func TestMethodsAndPaths(t *testing.T) {
	b := start(t, scripted("x"))
	tests := []struct {
		method, path, body string
		status             int
		code, header       string
	}{
		{"GET", "/v1/completions", "", 405, "method_not_allowed", "OPTIONS, POST"},
		{"PUT", "/v1/completions", "", 405, "method_not_allowed", "OPTIONS, POST"},
		{"BREW", "/v1/completions", "", 405, "method_not_allowed", "OPTIONS, POST"},
		{"POST", "/health", "", 405, "method_not_allowed", "GET, HEAD, OPTIONS"},
		{"DELETE", "/v1/log/x", "", 405, "method_not_allowed", "GET, HEAD, OPTIONS"},
		{"GET", "/v1/nothing", "", 404, "not_found", ""},
		{"POST", "/", "", 404, "not_found", ""},
		{"OPTIONS", "/nowhere", "", 404, "not_found", ""},
		{"GET", "/../../etc/passwd", "", 404, "not_found", ""},
		{"GET", "/%2e%2e/%2e%2e/etc/passwd", "", 404, "not_found", ""},
		{"GET", "/v1/log/%00", "", 404, "not_found", ""},
		{"POST", "/v1/completions/", `{"prompt":"a"}`, 200, "", ""},
		{"POST", "/v1//completions", `{"prompt":"a"}`, 200, "", ""},
		{"POST", "//v1/completions?x=1", `{"prompt":"a"}`, 200, "", ""},
		{"GET", "/health/", "", 200, "", ""},
		{"OPTIONS", "/v1/completions", "", 204, "", "OPTIONS, POST"},
	}
	for _, tt := range tests {
		r := b.do(tt.method, tt.path, tt.body)
		if r.status != tt.status {
			t.Errorf("%s %s: %d, want %d: %s", tt.method, tt.path, r.status, tt.status, r.body)
		}
		if tt.code != "" {
			wantError(t, r, tt.status, tt.code, "")
		}
		if got := r.header.Get("Allow"); got != tt.header {
			t.Errorf("%s %s: Allow %q, want %q", tt.method, tt.path, got, tt.header)
		}
	}
	for path, status := range map[string]int{"/health": 200, "/v1/models": 200, "/metrics": 200, "/v1/completions": 405, "/nowhere": 404} {
		r := b.do("HEAD", path, "")
		if r.status != status || r.body != "" || status >= 400 && r.header.Get("Content-Type") != "application/json" {
			t.Errorf("HEAD %s: %d %q %v", path, r.status, r.body, r.header)
		}
	}
}

func TestSecurityHeadersAreOnEveryAnswer(t *testing.T) {
	b := start(t, scripted("x"))
	for _, path := range []string{"/health", "/nowhere", "/metrics", "/v1/models"} {
		h := b.do("GET", path, "").header
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Content-Security-Policy": contentPolicy,
			"Cache-Control": "no-store", "X-Frame-Options": "DENY", "Cross-Origin-Resource-Policy": "same-origin",
		} {
			if got := h.Values(name); len(got) != 1 || got[0] != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		if h.Get("X-Request-Id") == "" {
			t.Errorf("%s: no request id", path)
		}
	}
}

// A canary in every place of a request shows up in no console line and no error.
func TestF73PromptsStayOutOfTheConsole(t *testing.T) {
	b := start(t, scripted("x"))
	const canary = "CANARY7"
	for _, body := range []string{
		`{"prompt":"` + canary + `"}`, `{"prompt":"` + canary + `","stream":true,"stop":["` + canary + `"]}`,
		`{"prompt":"a","logit_bias":{"` + canary + `":1}}`, `{"prompt":"a","images":["` + canary + `.png"]}`, `{"prompt":"` + canary, canary,
		`{"prompt":"` + canary + `","top_p":7}`, `{"` + canary + `":1,"` + canary + `":1}`,
	} {
		r := b.complete(body, "Authorization", "Bearer "+canary, "User-Agent", canary, "Referer", canary, "X-Else", canary)
		if strings.Contains(r.body, canary) || strings.Contains(fmt.Sprint(r.header), canary) {
			t.Errorf("%s: answered %v %s", body, r.header, r.body)
		}
	}
	b.do("GET", "/"+canary+"?"+canary, "")
	b.do(canary, "/v1/log/"+canary+"?q="+canary, "")
	b.do("GET", "/v1/tokens?contains="+canary, "")
	if log := b.console.String(); strings.Contains(log, canary) || !strings.Contains(log, "route=/v1/completions") {
		t.Errorf("console:\n%s", log)
	}
}

// A panic in a handler costs one answer and tells no text.
func TestAPanicIsAnInternalError(t *testing.T) {
	b := start(t, scripted("x"))
	b.server.cfg.Status = func() appliance.Status { panic("CANARY8") }
	r := b.complete(`{"prompt":"a"}`)
	wantError(t, r, 500, "internal_error", "")
	if r.header.Get("X-Should-Retry") != "false" {
		t.Errorf("headers %v", r.header)
	}
	if log := b.console.String(); strings.Contains(log, "CANARY8") || !strings.Contains(log, "request panicked") {
		t.Errorf("console:\n%s", log)
	}
}

// A client that sends its headers slowly is cut, and its silence costs nobody else.
func TestSlowHeadersAreCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, setup{pipes: true, script: appliancetest.Script{Pieces: []string{"x"}}, config: Config{HeaderTimeout: 50 * time.Millisecond}})
		conn, err := b.dial()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		io.WriteString(conn, "GET /health HTTP/1.1\r\nHost: localhost\r\n")
		conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.ReadAll(conn); err != nil {
			t.Errorf("the connection is still open: %v", err)
		}
	})
}

func withLocal(r *http.Request, a net.Addr) context.Context {
	return context.WithValue(r.Context(), http.LocalAddrContextKey, a)
}
