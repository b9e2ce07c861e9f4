package web

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"image"
	"image/png"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/iotest"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
	"ganglion/web/api"
)

func somePNG() string {
	var b bytes.Buffer
	png.Encode(&b, image.NewGray(image.Rect(0, 0, 4, 4)))
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

func TestF58MediaTheModelCannotTake(t *testing.T) {
	b := start(t, scripted("x"))
	wav := base64.StdEncoding.EncodeToString([]byte("RIFF\x00\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00\x80\x3e\x00\x00\x02\x00\x10\x00data\x02\x00\x00\x00\x00\x00"))
	mp4 := base64.StdEncoding.EncodeToString([]byte("\x00\x00\x00\x20ftypisom\x00"))
	for field, item := range map[string]string{"images": somePNG(), "audios": wav, "videos": mp4} {
		for _, body := range []string{`["` + item + `"]`, `"` + item + `"`, `{"data":"` + item + `"}`} {
			r := b.complete(`{"prompt":"a","` + field + `":` + body + `}`)
			if r.status != 400 || !strings.Contains(r.body, "modality_not_supported") || !strings.Contains(r.body, field) {
				t.Errorf("%s: %d %s", field, r.status, r.body)
			}
		}
		for _, none := range []string{"[]", "null"} {
			b.answer(`{"prompt":"a","` + field + `":` + none + `}`)
		}
	}
	wantError(t, b.complete(`{"prompt":"a","images":["aGVsbG8="]}`), 415, "unsupported_media_type", "images[0]")
	wantError(t, b.complete(`{"prompt":"a","images":["https://example.com/a.png"]}`), 400, "remote_media_disabled", "images[0]")
}

// B5: between a client and the server stands a proxy that passes one byte at a time
// both ways, so that every place is a cut.
func TestB5OneByteAtATime(t *testing.T) {
	b := start(t, setup{script: appliancetest.Script{For: func(string) string { return "\r\n\r\ndata: [DONE]\n\n🦙 : ping é" }}})
	proxy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	defer proxy.Close()
	pass := func(dst net.Conn, src io.Reader) {
		io.Copy(struct{ io.Writer }{dst}, iotest.OneByteReader(src)) // ends when either side closes
		dst.(*net.TCPConn).CloseWrite()
	}
	wg.Go(func() {
		for {
			client, err := proxy.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", strings.TrimPrefix(b.url, "http://"))
			if err != nil {
				t.Error(err)
				client.Close()
				return
			}
			wg.Go(func() { pass(server, client) })
			wg.Go(func() { pass(client, server); client.Close(); server.Close() })
		}
	})
	direct := *b
	direct.url = "http://" + proxy.Addr().String()
	direct.client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	const body = `{"prompt":"p 🦙","logprobs":true}`
	want := b.answer(body).Choices[0].Text
	plain, _ := both(t, &direct, body)
	if got := plain.Choices[0].Text; got != want || !strings.Contains(got, "🦙") {
		t.Errorf("%q, want %q", got, want)
	}
	wantError(t, direct.complete(`{"prompt":"a"`), 400, "invalid_json", "")
}

// B9: the counters are the rows.
func TestB9MetricsEqualTheRows(t *testing.T) {
	b := start(t, setup{script: endless("x")})
	for range 5 {
		b.answer(`{"prompt":"ab","max_completion_tokens":3}`)
		b.streamed(`{"prompt":"ab","stream":true,"max_completion_tokens":2,"stop":["xx"]}`)
	}
	b.answer(`{"prompt":["a","b"],"max_completion_tokens":1}`)
	wantError(t, b.complete(`{`), 400, "invalid_json", "")
	r := b.do("GET", "/metrics", "")
	sum := func(name string) (total float64) {
		for _, line := range strings.Split(r.body, "\n") {
			if rest, ok := strings.CutPrefix(line, name); ok && (rest[0] == ' ' || rest[0] == '{') {
				v, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
				if err != nil {
					t.Fatal(err)
				}
				total += v
			}
		}
		return total
	}
	rows := b.recorder.Ended()
	var prompt, completion int
	for _, row := range rows {
		prompt, completion = prompt+row.PromptTokens, completion+row.CompletionTokens
	}
	for name, want := range map[string]int{
		"ganglion_completions_total": len(rows), `ganglion_completions_total{outcome="stop"}`: 5, `ganglion_completions_total{outcome="length"}`: 7,
		`ganglion_tokens_total{kind="prompt"}`: prompt, `ganglion_tokens_total{kind="completion"}`: completion, "ganglion_completions_open": 0,
		"ganglion_first_token_seconds_count": len(rows), "ganglion_ready": 1,
		`ganglion_http_requests_total{method="POST",route="/v1/completions",status="200"}`: 11,
		`ganglion_http_requests_total{method="POST",route="/v1/completions",status="400"}`: 1,
	} {
		if got := sum(name); got != float64(want) {
			t.Errorf("%s is %v, want %d", name, got, want)
		}
	}
	if len(rows) != 12 {
		t.Errorf("%d rows", len(rows))
	}
}

func TestDetails(t *testing.T) {
	b := start(t, setup{model: appliancetest.NewHashed(appliancetest.Options{})})
	const body = `{"prompt":"p","max_completion_tokens":4,"seed":3}`
	plain := b.answer(body, "Ganglion-Details", "1")
	c := plain.Choices[0]
	if len(c.Details.Tokens) != 4 || len(c.Details.Tokens[0].Top) != 5 || c.Logprobs != nil {
		t.Errorf("%+v", c)
	}
	g := plain.Ganglion
	if g == nil || g.Seed != 3 || g.Backend != "double" || g.Numerics != "exact" || g.ID != b.recorder.Ended()[0].ID || len(g.Params) == 0 {
		t.Errorf("%+v", g)
	}
	chunks := b.streamed(strings.Replace(body, "{", `{"stream":true,"top_logprobs":2,`, 1), "Ganglion-Details", "1")
	var tokens []api.TokenDetail
	for i, ch := range chunks {
		tokens = append(tokens, ch.Choices[0].Details.Tokens...)
		if (ch.Ganglion != nil) != (i == len(chunks)-1) {
			t.Errorf("chunk %d: %+v", i, ch.Ganglion)
		}
	}
	for i, tok := range tokens {
		want := c.Details.Tokens[i]
		if tok.ID != want.ID || tok.Logprob != want.Logprob || tok.Offset != want.Offset || len(tok.Top) != 2 {
			t.Errorf("token %d: %+v, plain %+v", i, tok, want)
		}
	}
	if r := b.complete(body); strings.Contains(r.body, "details") || strings.Contains(r.body, "ganglion") {
		t.Errorf("without the header: %s", r.body)
	}
	many := b.answer(`{"prompt":["p","q"],"max_completion_tokens":2}`, "Ganglion-Details", "1")
	if many.Choices[0].Ganglion == nil || many.Choices[1].Ganglion.ID == many.Choices[0].Ganglion.ID || many.Ganglion.ID != many.ID {
		t.Errorf("%+v", many)
	}
	if c := b.answer(`{"prompt":"p","logprobs":true,"top_logprobs":3,"max_completion_tokens":1}`).Choices[0]; len(c.Details.Tokens[0].Top) != 3 {
		t.Errorf("top_logprobs: %+v", c)
	}
}

func TestIntegerLogprobsGiveTheObject(t *testing.T) {
	b := start(t, scripted("é", "b", "🦙"))
	for n := range 3 {
		plain, chunks := both(t, b, fmt.Sprintf(`{"prompt":"p","logprobs":%d}`, n))
		o := plain.Choices[0].Logprobs.(map[string]any)
		if fmt.Sprint(o["tokens"], o["text_offset"]) != "[é b 🦙] [0 1 2]" || len(o["token_logprobs"].([]any)) != 3 {
			t.Errorf("%v", o)
		}
		for _, top := range o["top_logprobs"].([]any) {
			if got := len(top.(map[string]any)); got != max(1, n) {
				t.Errorf("%d alternatives of %d: %v", got, n, top)
			}
		}
		var offsets []any
		for _, c := range chunks {
			offsets = append(offsets, c.Choices[0].Logprobs.(map[string]any)["text_offset"].([]any)...)
		}
		if fmt.Sprint(offsets) != "[0 1 2]" {
			t.Errorf("streamed offsets %v", offsets)
		}
	}
}

func TestTokenPrompts(t *testing.T) {
	b := start(t, scripted("x"))
	b.answer(`{"prompt":[[104,105]]}`)
	b.answer(`{"prompt":["hi"]}`)
	if p := b.model.Prompts(); !slices.Equal(p[0], p[1]) {
		t.Errorf("%v", p)
	}
	if r := b.complete(`{"prompt":[[999999]]}`); r.status != 400 {
		t.Errorf("%d %s", r.status, r.body)
	}
	if c := b.answer(`{"prompt":[[]]}`); c.Usage.PromptTokens != 1 { // as "": from BOS
		t.Errorf("%+v", *c.Usage)
	}
}

func TestTokenRoutes(t *testing.T) {
	b := start(t, setup{script: appliancetest.Script{Pieces: []string{" cat", "cat", "Cats", "\xF0\x9F", "dog"}}, options: appliancetest.Options{Vocabulary: appliancetest.Vocabulary{AddsBOS: true}}})
	tests := []struct{ path, body, want string }{
		{"/v1/tokenize", `{"text":"hi"}`, `{"tokens":[{"id":256,"text":"<bos>"},{"id":104,"text":"h"},{"id":105,"text":"i"}]}`},
		{"/v1/tokenize", `{"text":"<eos>","bos":false}`, `{"tokens":[{"id":257,"text":"<eos>"}]}`},
		{"/v1/tokenize", `{"text":"\u0000","bos":false,"special":false}`, `{"tokens":[{"id":0,"text":"\u0000"}]}`},
		{"/v1/tokenize", `{"text":"é","bos":false}`, `{"tokens":[{"id":195,"text":"<0xC3>"},{"id":169,"text":"<0xA9>"}]}`},
		{"/v1/tokenize", `{"text":"","bos":false}`, `{"tokens":[]}`},
		{"/v1/detokenize", `{"tokens":[256,104,105]}`, `{"text":"<bos>hi"}`},
		{"/v1/detokenize", `{"tokens":[195,169,195]}`, `{"text":"é�"}`},
		{"/v1/detokenize", `{"tokens":[]}`, `{"text":""}`},
	}
	for _, tt := range tests {
		if r := b.do("POST", tt.path, tt.body); r.status != 200 || r.body != tt.want {
			t.Errorf("%s: %d %s, want %s", tt.body, r.status, r.body, tt.want)
		}
	}
	r := b.do("GET", "/v1/tokens?contains=cat", "")
	list := parse[api.TokenList](t, r.body)
	if len(list.Tokens) != 3 || list.Tokens[0].Text != "cat" || *list.More {
		t.Errorf("%s", r.body)
	}
	if list = parse[api.TokenList](t, b.do("GET", "/v1/tokens?contains=CAT&limit=2", "").body); len(list.Tokens) != 2 || !*list.More {
		t.Errorf("%+v", list)
	}
	wantError(t, b.do("POST", "/v1/detokenize", `{"tokens":[100000]}`), 400, "invalid_value", "tokens[0]")
	wantError(t, b.do("POST", "/v1/tokenize", `{}`), 400, "missing_parameter", "text")
	wantError(t, b.do("GET", "/v1/tokens", ""), 400, "missing_parameter", "contains")
	wantError(t, b.do("GET", "/v1/tokens?contains=a&limit=x", ""), 400, "invalid_value", "limit")
	none := start(t, setup{noModel: true})
	wantError(t, none.do("POST", "/v1/tokenize", `{"text":"a"}`), 503, "no_model", "")
}

// folder finds the models of one folder.
type folder struct {
	dir    string
	loaded string
}

func (f *folder) Found(context.Context) []appliance.Found {
	names, _ := filepath.Glob(filepath.Join(f.dir, "*.gguf"))
	var out []appliance.Found
	for _, n := range names {
		out = append(out, appliance.Found{ID: "id-" + filepath.Base(n), Name: filepath.Base(n), Path: n, Source: "folder", Available: true})
	}
	return out
}

func (f *folder) Load(_ context.Context, id string) error {
	if id != "id-a.gguf" {
		return appliance.Errorf(appliance.CodeNotFound, "id", "id: there is no such model")
	}
	f.loaded = id
	return nil
}

func TestModelRoutes(t *testing.T) {
	f := &folder{dir: t.TempDir()}
	b := start(t, setup{config: Config{Models: f, ModelsDir: f.dir, MaxModel: 1000}})
	put := func(name, body string) reply {
		return b.do("PUT", "/v1/models/files/"+name, body, "Content-Type", "application/octet-stream")
	}
	r := put("a.gguf", "GGUF and the rest")
	if r.status != 201 || r.body != `{"id":"id-a.gguf"}` {
		t.Errorf("%d %s", r.status, r.body)
	}
	if data, err := os.ReadFile(filepath.Join(f.dir, "a.gguf")); string(data) != "GGUF and the rest" {
		t.Errorf("%q, %v", data, err)
	}
	wantError(t, put("a.gguf", "GGUF again"), 409, "already_exists", "name")
	wantError(t, put("b.gguf", "PK and the rest"), 400, "invalid_model_file", "")
	wantError(t, put("b.gguf", "GG"), 400, "invalid_model_file", "")
	wantError(t, put("b.gguf", "GGUF"+strings.Repeat("x", 1000)), 413, "body_too_large", "")
	for _, name := range []string{"b.txt", ".gguf", ".b.gguf", "a%5Cb.gguf", "a%00.gguf", "c:b.gguf", strings.Repeat("x", 300) + ".gguf"} {
		wantError(t, put(name, "GGUF"), 400, "invalid_value", "name")
	}
	if r := put("..%2Fb.gguf", "GGUF"); r.status != 404 {
		t.Errorf("a path: %d %s", r.status, r.body)
	}
	long := b.request("PUT", "/v1/models/files/b.gguf", "")
	long.Body, long.ContentLength = io.NopCloser(strings.NewReader("GGUF"+strings.Repeat("x", 2000))), -1
	resp, err := b.client.Do(long)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 413 {
		t.Errorf("chunked: %d", resp.StatusCode)
	}
	// A client that leaves in the middle leaves nothing behind.
	conn, err := net.Dial("tcp", strings.TrimPrefix(b.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "PUT /v1/models/files/b.gguf HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n\r\nGGUF half")
	eventually(t, "the part is there", func() bool {
		parts, _ := filepath.Glob(filepath.Join(f.dir, uploadPattern))
		return len(parts) == 1
	})
	conn.Close()
	eventually(t, "the part is gone", func() bool {
		names, _ := os.ReadDir(f.dir)
		return len(names) == 1
	})

	models := parse[api.ModelList](t, b.do("GET", "/v1/models", "").body)
	if len(models.Data) != 2 || models.Data[0].ID != "scripted" || !models.Data[0].Loaded || models.Data[1].ID != "id-a.gguf" {
		t.Errorf("%+v", models)
	}
	found := parse[api.FoundList](t, b.do("GET", "/v1/models/found", "").body)
	if len(found.Models) != 1 || found.Models[0].Name != "a.gguf" {
		t.Errorf("%+v", found)
	}
	if r := b.do("POST", "/v1/models/load", `{"id":"id-a.gguf"}`); r.status != 202 || f.loaded != "id-a.gguf" {
		t.Errorf("%d %s", r.status, r.body)
	}
	wantError(t, b.do("POST", "/v1/models/load", `{"id":"x"}`), 404, "not_found", "id")
	none := start(t, setup{noModel: true})
	if r := none.do("GET", "/v1/models", ""); r.body != `{"object":"list","data":[]}` {
		t.Errorf("%s", r.body)
	}
	wantError(t, none.do("PUT", "/v1/models/files/a.gguf", "GGUF"), 404, "not_found", "")
}

func TestHealth(t *testing.T) {
	b := start(t, setup{noModel: true})
	r := b.do("GET", "/health", "")
	if h := parse[api.Health](t, r.body); r.status != 503 || r.header.Get("Retry-After") == "" || h.Status != "no_model" {
		t.Errorf("%d %s", r.status, r.body)
	}
	begin := make(chan struct{})
	b.service.Load(t.Context(), func(ctx context.Context, progress func(done, total int64)) (appliance.Model, error) {
		progress(3, 10)
		<-begin
		return appliancetest.NewScripted(appliancetest.Script{Pieces: []string{"x"}}, appliancetest.Options{}), nil
	}, "m")
	eventually(t, "the load begins", func() bool { return strings.Contains(b.do("GET", "/healthz", "").body, `"done":3,"total":10`) })
	r = b.do("GET", "/healthz", "")
	if h := parse[api.Health](t, r.body); r.status != 503 || r.header.Get("Retry-After") == "" || h.Status != "loading" {
		t.Errorf("%d %s", r.status, r.body)
	}
	wantError(t, b.complete(`{"prompt":"a"}`), 503, "model_loading", "")
	wantError(t, b.do("POST", "/v1/tokenize", `{"text":"a"}`), 503, "model_loading", "")
	close(begin)
	eventually(t, "the model serves", func() bool { return b.do("GET", "/health", "").status == 200 })
	b.answer(`{"prompt":"a"}`)
}

func TestPage(t *testing.T) {
	files := fstest.MapFS{
		"index.html": {Data: []byte("<!doctype html><title>Ganglion</title>")}, "js/app.js": {Data: []byte("export {}")},
		"css/a.css": {Data: []byte("a{}")}, "favicon.svg": {Data: []byte("<svg/>")}, "embed.go": {Data: []byte("package ui")},
	}
	b := start(t, setup{config: Config{UI: files, Key: "k"}})
	for path, mime := range map[string]string{"/": "text/html; charset=utf-8", "/js/app.js": "text/javascript; charset=utf-8", "/css/a.css": "text/css; charset=utf-8", "/favicon.svg": "image/svg+xml"} {
		r := b.do("GET", path, "")
		if r.status != 200 || r.header.Get("Content-Type") != mime || r.header.Get("Cache-Control") != "no-cache" || r.header.Get("Content-Security-Policy") != contentPolicy {
			t.Errorf("%s: %d %v", path, r.status, r.header)
		}
		again := b.do("GET", path, "", "If-None-Match", r.header.Get("ETag"))
		if again.status != 304 || again.body != "" {
			t.Errorf("%s again: %d", path, again.status)
		}
		if head := b.do("HEAD", path, ""); head.status != 200 || head.body != "" || head.header.Get("ETag") != r.header.Get("ETag") {
			t.Errorf("HEAD %s: %d", path, head.status)
		}
	}
	for _, path := range []string{"/embed.go", "/js", "/js/", "/index", "/js/../embed.go"} {
		wantError(t, b.do("GET", path, ""), 404, "not_found", "")
	}
}

// F76 on the server's side: whatever a file or a name holds, nothing that is served
// may run a script that is not the page's own.
func TestF76NothingInlineMayRun(t *testing.T) {
	b := start(t, scripted(`<script>window.P=1</script>`))
	r := b.complete(`{"prompt":"<img src=x onerror=window.P=1>"}`)
	if r.header.Get("Content-Type") != "application/json" || r.header.Get("X-Content-Type-Options") != "nosniff" || r.header.Get("Content-Security-Policy") != contentPolicy {
		t.Errorf("%v", r.header)
	}
	if strings.Contains(contentPolicy, "unsafe") || !strings.HasPrefix(contentPolicy, "default-src 'self';") {
		t.Error(contentPolicy)
	}
}

// Every code that is declared anywhere has its line in the table.
func TestEveryCodeHasAStatus(t *testing.T) {
	n := 0
	for _, pattern := range []string{"../appliance/errors.go", "../appliance/media/read.go", "errors.go"} {
		file, err := parser.ParseFile(token.NewFileSet(), pattern, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 || !strings.HasPrefix(strings.ToLower(spec.Names[0].Name), "code") {
				return true
			}
			lit, ok := spec.Values[0].(*ast.BasicLit)
			if !ok {
				return true
			}
			n++
			code, _ := strconv.Unquote(lit.Value)
			f, ok := failures[appliance.Code(code)]
			if !ok || f.status < 400 || f.retryAfter > 0 && f.status != 503 {
				t.Errorf("%s: %+v, in the table %v", code, f, ok)
			}
			return true
		})
	}
	if n != len(failures) {
		t.Errorf("%d codes are declared, the table has %d", n, len(failures))
	}
}
