package web

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
	"ganglion/web/api"
)

// bench is a running server over a scripted model, with everything a test looks at.
type bench struct {
	t        *testing.T
	service  *appliance.Service
	model    *appliancetest.Scripted
	recorder *appliancetest.Recorder
	metrics  *Metrics
	server   *Server
	console  *syncBuffer
	url      string
	client   *http.Client
	dial     func() (net.Conn, error)
}

// setup says what is particular about a bench.
type setup struct {
	script  appliancetest.Script
	model   *appliancetest.Scripted // instead of script
	options appliancetest.Options
	encoder appliance.Encoder
	service appliance.Config
	config  Config // overrides; Completer and what belongs to it is set here
	noModel bool
	// pipes has connections in memory: a bubble of testing/synctest has a time of its own
	// then, which passes while all wait, and a limit of milliseconds is met on any machine.
	pipes bool
}

// pipes is a listener whose connections are in memory.
type pipes struct {
	calls  chan net.Conn
	closed chan struct{}
	close  func()
}

func newPipes() *pipes {
	closed := make(chan struct{})
	return &pipes{calls: make(chan net.Conn), closed: closed, close: sync.OnceFunc(func() { close(closed) })}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.calls:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.close()
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func (p *pipes) dial() (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.calls <- server:
		return client, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// listen gives a server its listener and the way to it.
func (o *setup) listen() (net.Listener, func() (net.Conn, error), error) {
	if o.pipes {
		p := newPipes()
		return p, p.dial, nil
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	return l, func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) }, err
}

// syncBuffer is a console that several goroutines write.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// start starts a server that ends with the test. No seed is drawn unless the setup says how.
func start(t *testing.T, o setup) *bench {
	t.Helper()
	b := &bench{t: t, recorder: &appliancetest.Recorder{}, metrics: NewMetrics(), console: &syncBuffer{}}
	logger := slog.New(slog.NewTextHandler(b.console, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o.service.Recorder, o.service.Logger = b.metrics.Recorder(b.recorder), logger
	if o.service.Rand == nil {
		o.service.Rand = appliancetest.Seed
	}
	var err error
	if b.service, err = appliance.NewService(o.service); err != nil {
		t.Fatal(err)
	}
	if !o.noModel {
		if b.model = o.model; b.model == nil {
			b.model = appliancetest.NewScripted(o.script, o.options)
		}
		if o.encoder != nil {
			b.service.Use(appliance.WithEncoder(b.model, o.encoder))
		} else {
			b.service.Use(b.model)
		}
	}
	c := o.config
	c.Completer, c.Status, c.Vocabulary, c.Measure, c.Metrics, c.Logger = FromService(b.service), b.service.Status, b.service.Vocabulary, b.service.Measure, b.metrics, logger
	if b.server, err = New(c); err != nil {
		t.Fatal(err)
	}
	var listener net.Listener
	if listener, b.dial, err = o.listen(); err != nil {
		t.Fatal(err)
	}
	b.client = &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return b.dial() }}}
	b.url = "http://" + listener.Addr().String()
	hs := b.server.HTTPServer()
	served := make(chan struct{})
	go func() {
		defer close(served)
		hs.Serve(listener)
	}()
	t.Cleanup(func() {
		b.client.CloseIdleConnections()
		hs.Close()
		<-served
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // what still runs is cancelled
		b.service.Close(ctx)
		if f := b.recorder.Faults(); len(f) > 0 {
			t.Errorf("the recorder was used wrongly: %v", f)
		}
	})
	return b
}

// reply is an answer that was read to its end.
type reply struct {
	status int
	header http.Header
	body   string
}

// do sends a request and checks the answer against both readings of our document.
func (b *bench) do(method, path, body string, header ...string) reply {
	b.t.Helper()
	r := b.request(method, path, body, header...)
	out := b.send(r)
	checkExchange(b.t, r, body, out)
	return out
}

// send sends a request and reads the answer to its end.
func (b *bench) send(r *http.Request) reply {
	b.t.Helper()
	resp, err := b.client.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(data)}
}

// request makes a request; header holds names and values in turn.
func (b *bench) request(method, path, body string, header ...string) *http.Request {
	b.t.Helper()
	r, err := http.NewRequest(method, b.url+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		} else {
			r.Header.Add(header[i], header[i+1])
		}
	}
	return r
}

// complete posts to the completion route.
func (b *bench) complete(body string, header ...string) reply {
	b.t.Helper()
	return b.do("POST", "/v1/completions", body, header...)
}

// answer decodes a plain answer that must be a 200.
func (b *bench) answer(body string, header ...string) api.Completion {
	b.t.Helper()
	r := b.complete(body, header...)
	if r.status != 200 {
		b.t.Fatalf("status %d, want 200: %s", r.status, r.body)
	}
	return parse[api.Completion](b.t, r.body)
}

// streamed posts with stream and gives the data of each event but the end mark,
// which must be there once at the end.
func (b *bench) streamed(body string, header ...string) []api.Completion {
	b.t.Helper()
	r := b.complete(body, header...)
	if r.status != 200 {
		b.t.Fatalf("status %d, want 200: %s", r.status, r.body)
	}
	var chunks []api.Completion
	for _, data := range events200(b.t, r) {
		chunks = append(chunks, parse[api.Completion](b.t, data))
	}
	return chunks
}

// events200 splits a stream into the data of its events.
func events200(t *testing.T, r reply) []string {
	t.Helper()
	if got := r.header.Get("Content-Type"); got != "text/event-stream" {
		t.Fatalf("content type %q", got)
	}
	rest, ok := strings.CutSuffix(r.body, "data: [DONE]\n\n")
	if !ok || strings.Contains(rest, "[DONE]") {
		t.Fatalf("the end mark is not once at the end: %q", r.body)
	}
	var out []string
	for _, event := range strings.SplitAfter(rest, "\n\n") {
		if event == "" || strings.HasPrefix(event, ": keep-alive") {
			continue
		}
		data, ok := strings.CutPrefix(event, "data: ")
		if !ok || !strings.HasSuffix(data, "\n\n") || strings.Count(data, "\n") != 2 {
			t.Fatalf("event %q", event)
		}
		out = append(out, strings.TrimSpace(data))
	}
	return out
}

func parse[T any](t *testing.T, s string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(s), &v); err != nil {
		t.Fatalf("%v in %s", err, s)
	}
	return v
}

// text joins the texts of a stream's choice.
func text(chunks []api.Completion, index int) string {
	var b strings.Builder
	for _, c := range chunks {
		for _, ch := range c.Choices {
			if ch.Index == index {
				b.WriteString(ch.Text)
			}
		}
	}
	return b.String()
}

// wantError checks a JSON error of a status, code and field.
func wantError(t *testing.T, r reply, status int, code, param string) {
	t.Helper()
	if r.status != status {
		t.Errorf("status %d, want %d: %s", r.status, status, r.body)
	}
	if ct := r.header.Get("Content-Type"); ct != "application/json" {
		t.Errorf("content type %q, want application/json", ct)
	}
	if len(r.body) > maxErrorBody {
		t.Errorf("%d bytes of error", len(r.body))
	}
	e := parse[api.ErrorBody](t, r.body).Error
	deref := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	if got := deref(e.Code); got != code {
		t.Errorf("code %q, want %q: %s", got, code, r.body)
	}
	if got := deref(e.Param); got != param {
		t.Errorf("param %q, want %q: %s", got, param, r.body)
	}
	if param != "" && !strings.Contains(e.Message, param) {
		t.Errorf("the message does not name %s: %s", param, e.Message)
	}
}

// eventually waits for something that happens by itself, without a signal of its own, for
// longer than a loaded machine needs.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); !ok(); {
		if time.Now().After(end) {
			t.Fatal("waited two minutes in vain: " + what)
		}
		time.Sleep(time.Millisecond)
	}
}

// lines reads an open stream line by line.
func lines(r io.Reader) func() (string, error) {
	br := bufio.NewReader(r)
	return func() (string, error) {
		s, err := br.ReadString('\n')
		return strings.TrimSuffix(s, "\n"), err
	}
}

// uncheckedGet gets without holding the answer against the documents, which cannot
// express every query.
func (b *bench) uncheckedGet(path string) reply {
	b.t.Helper()
	return b.send(b.request("GET", path, ""))
}

// unchecked posts without holding the answer against the documents, which takes
// longer than the answer.
func (b *bench) unchecked(body string) reply {
	b.t.Helper()
	return b.send(b.request("POST", "/v1/completions", body))
}
