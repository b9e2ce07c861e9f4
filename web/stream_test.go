package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ganglion/appliance"
	"ganglion/appliance/appliancetest"
	"ganglion/gpu/engine"
	"ganglion/web/api"
)

// gated is a bench whose model takes one step for each value sent.
func gated(t *testing.T, o setup) (*bench, chan<- struct{}) {
	gate := make(chan struct{})
	o.options.Gate = gate
	o.service.Speculate = appliance.SpeculateOff // a step is a token
	b := start(t, o)
	t.Cleanup(func() { close(gate) }) // runs before the server is closed
	return b, gate
}

func endless(piece string) appliancetest.Script {
	return appliancetest.Script{Pieces: []string{piece}, Endless: true}
}

// Each token is with the client before the next one is begun.
func TestEachTokenIsFlushed(t *testing.T) {
	b, gate := gated(t, setup{script: endless("x"), config: Config{KeepAlive: time.Hour}})
	go func() { gate <- struct{}{} }()
	resp, err := b.client.Do(b.request("POST", "/v1/completions", `{"prompt":"p","stream":true,"max_completion_tokens":4}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	next := lines(resp.Body)
	for i := range 3 {
		line, err := next()
		if err != nil || !strings.Contains(line, `"text":"x"`) {
			t.Fatalf("token %d: %q, %v", i, line, err)
		}
		if line, _ = next(); line != "" {
			t.Fatalf("%q after an event", line)
		}
		gate <- struct{}{}
	}
	if _, err := io.ReadAll(resp.Body); err != nil {
		t.Error(err)
	}
}

func TestKeepAliveWhileTheEngineIsSilent(t *testing.T) {
	b, gate := gated(t, setup{script: endless("x"), config: Config{KeepAlive: 20 * time.Millisecond}})
	resp, err := b.client.Do(b.request("POST", "/v1/completions", `{"prompt":"p","stream":true,"max_completion_tokens":2}`))
	if err != nil {
		t.Fatal(err) // the headers come with the first comment, before any token
	}
	defer resp.Body.Close()
	next := lines(resp.Body)
	for range 3 {
		line, err := next()
		if err != nil || line != ": keep-alive" {
			t.Fatalf("%q, %v", line, err)
		}
		if line, _ = next(); line != "" {
			t.Fatalf("%q after a comment", line)
		}
	}
	gate <- struct{}{}
	gate <- struct{}{}
	rest, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(rest); strings.Count(s, `"text":"x"`) != 2 || !strings.HasSuffix(s, "data: [DONE]\n\n") || strings.Contains(s, "ping") {
		t.Errorf("stream %q", s)
	}
}

// F44 on a small scale: every limit of the server is far below the time that the
// answer takes, which the engine needs.
func TestF44ASlowAnswerIsNeverCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := 250 * time.Millisecond
		o := setup{pipes: true, script: endless("x"), config: Config{HeaderTimeout: limit, BodyTimeout: limit, WriteTimeout: limit, IdleTimeout: limit, KeepAlive: time.Hour}}
		o.service.Speculate = appliance.SpeculateOff // a step is a token
		o.options.Before = func(int, []engine.Row) error {
			time.Sleep(limit / 2) // the slow engine itself
			return nil
		}
		b := start(t, o)
		begin := time.Now()
		plain, chunks := both(t, b, `{"prompt":"p","max_completion_tokens":15}`)
		if plain.Usage.CompletionTokens != 15 || len(text(chunks, 0)) != 15 {
			t.Errorf("%d and %d tokens", plain.Usage.CompletionTokens, len(text(chunks, 0)))
		}
		if took := time.Since(begin); took < 10*limit {
			t.Errorf("both took %v: this test shows nothing", took)
		}
	})
}

// The partner of F44: a limit that does count time ends a body that stops coming.
func TestABodyThatStopsIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, setup{pipes: true, script: endless("x"), config: Config{BodyTimeout: 50 * time.Millisecond}})
		conn, err := b.dial()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		io.WriteString(conn, "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20\r\n\r\n{\"pro")
		answer, err := io.ReadAll(conn)
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") || !strings.Contains(string(answer), "request_timeout") {
			t.Errorf("%v: %q", err, answer)
		}
	})
}

// A body that comes all the time, but at a crawl, is refused as well.
func TestABodyAtACrawlIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, setup{pipes: true, script: endless("x"), config: Config{BodyTimeout: 100 * time.Millisecond}})
		conn, err := b.dial()
		if err != nil {
			t.Fatal(err)
		}
		var crawl sync.WaitGroup
		defer crawl.Wait()
		defer conn.Close()
		io.WriteString(conn, "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n")
		crawl.Go(func() {
			for {
				if _, err := io.WriteString(conn, " "); err != nil {
					return
				}
				time.Sleep(5 * time.Millisecond)
			}
		})
		answer, _ := io.ReadAll(conn) // the server may cut what still comes
		if !strings.HasPrefix(string(answer), "HTTP/1.1 408 ") {
			t.Errorf("%q", answer)
		}
	})
}

// A client that stops reading a stream is given up, and its completion with it.
func TestAnUnreadStreamIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		piece := strings.Repeat("x", 1<<16)
		b := start(t, setup{pipes: true, script: endless(piece), config: Config{WriteTimeout: 100 * time.Millisecond}})
		conn, err := b.dial()
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		const body = `{"prompt":"p","stream":true,"max_completion_tokens":1000}`
		fmt.Fprintf(conn, "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
		eventually(t, "the row is closed", func() bool { return len(b.recorder.Ended()) == 1 })
		eventually(t, "the request is over", func() bool { return strings.Contains(b.console.String(), "msg=request ") })
	})
}

// A deadline of one answer does not reach into the next on the same connection.
func TestDeadlinesDoNotOutliveTheirAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, setup{pipes: true, script: endless("x"), config: Config{WriteTimeout: 50 * time.Millisecond, BodyTimeout: 50 * time.Millisecond}})
		for range 3 {
			b.answer(`{"prompt":"p","max_completion_tokens":1}`)
			time.Sleep(80 * time.Millisecond) // longer than the limits of the last answer
		}
	})
}

func TestF60HangingUpStopsTheWork(t *testing.T) {
	b, gate := gated(t, setup{script: endless("x"), options: appliancetest.Options{Slots: 1}, config: Config{KeepAlive: time.Hour}})
	ctx, cancel := context.WithCancel(context.Background())
	r := b.request("POST", "/v1/completions", `{"prompt":"p","stream":true,"max_completion_tokens":4000}`).WithContext(ctx)
	got := make(chan *http.Response)
	go func() {
		resp, err := b.client.Do(r)
		if err != nil {
			t.Error(err)
		}
		got <- resp
	}()
	gate <- struct{}{}
	resp := <-got
	next := lines(resp.Body)
	for n := 0; n < 3; {
		line, err := next()
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(line, "data: ") {
			if n++; n < 3 {
				gate <- struct{}{}
			}
		}
	}
	cancel()
	resp.Body.Close()
	eventually(t, "the request is over", func() bool { return strings.Contains(b.console.String(), "msg=request ") })
	// The step that is under way may end; no other is begun.
	eventually(t, "the row is closed", func() bool {
		select {
		case gate <- struct{}{}:
			t.Log("a step")
		case <-time.After(time.Millisecond):
		}
		return len(b.recorder.Ended()) == 1
	})
	row := b.recorder.Ended()[0]
	if row.Outcome != appliance.OutcomeCancelled || row.CompletionTokens < 3 || row.CompletionTokens > 4 {
		t.Errorf("outcome %s with %d tokens", row.Outcome, row.CompletionTokens)
	}
	go func() { gate <- struct{}{} }()
	b.answer(`{"prompt":"q","max_completion_tokens":1}`)
}

func TestF60HangingUpOnAPlainRequest(t *testing.T) {
	running := make(chan struct{}, 1)
	// The end is out of reach, however late this test gets a processor.
	o := setup{script: endless("x"), options: appliancetest.Options{Context: 1 << 30}}
	o.service.Speculate = appliance.SpeculateOff
	o.options.Before = func(int, []engine.Row) error {
		select {
		case running <- struct{}{}:
		default:
		}
		time.Sleep(time.Millisecond) // a step of the model
		return nil
	}
	b := start(t, o)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-running
		cancel()
	}()
	r := b.request("POST", "/v1/completions", `{"prompt":"p","max_completion_tokens":1000000000}`).WithContext(ctx)
	if resp, err := b.client.Do(r); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, %v", resp, err)
	}
	eventually(t, "the row is closed", func() bool { return len(b.recorder.Ended()) == 1 })
	if row := b.recorder.Ended()[0]; row.Outcome != appliance.OutcomeCancelled {
		t.Errorf("outcome %s with %d tokens", row.Outcome, row.CompletionTokens)
	}
	eventually(t, "the request is over", func() bool { return strings.Contains(b.console.String(), "msg=request ") })
	if out := b.console.String(); strings.Contains(out, "level=ERROR") || !strings.Contains(out, "status=499") {
		t.Errorf("a client that left counts as a failure of the server:\n%s", out)
	}
}

func TestAFailureInsideAStreamIsAnEvent(t *testing.T) {
	for _, fails := range []int{1, 3} {
		o := setup{script: endless("x")}
		o.options.Before = func(run int, _ []engine.Row) error {
			if run >= fails {
				return errors.New("the device caught fire in CANARY9")
			}
			return nil
		}
		b := start(t, o)
		r := b.complete(`{"prompt":"p","stream":true,"max_completion_tokens":9}`)
		if fails == 1 { // nothing was sent yet: a plain error with its status
			wantError(t, r, 500, "internal_error", "")
			continue
		}
		events := events200(t, r)
		last := parse[api.ErrorBody](t, events[len(events)-1])
		if r.status != 200 || last.Error.Code == nil || *last.Error.Code != "internal_error" || strings.Contains(r.body, "CANARY9") {
			t.Errorf("%d %s", r.status, r.body)
		}
	}
}

func TestQueueFullIs503WithRetryAfter(t *testing.T) {
	b, gate := gated(t, setup{script: endless("x"), options: appliancetest.Options{Slots: 1}, service: appliance.Config{QueueMax: 1}, config: Config{KeepAlive: time.Millisecond}})
	for range 2 { // one runs, one waits; their headers come with the first comment
		resp, err := b.client.Do(b.request("POST", "/v1/completions", `{"prompt":"p","stream":true,"max_completion_tokens":1}`))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
	}
	for _, body := range []string{`{"prompt":"p"}`, `{"prompt":"p","stream":true}`} {
		r := b.complete(body)
		wantError(t, r, 503, "queue_full", "")
		if r.header.Get("Retry-After") == "" || r.header.Get("X-Should-Retry") != "" {
			t.Errorf("headers %v", r.header)
		}
	}
	gate <- struct{}{}
	gate <- struct{}{}
}

// Choices of one request stream beside each other, each with its own finish.
func TestChoicesAreInterleaved(t *testing.T) {
	b := start(t, setup{script: appliancetest.Script{For: func(p string) string { return "to " + p }}})
	plain, _ := both(t, b, `{"prompt":["a","bb"],"n":2}`)
	want := []string{"to a", "to a", "to bb", "to bb"}
	chunks := b.streamed(`{"prompt":["a","bb"],"n":2,"stream":true}`)
	finished := 0
	for i, w := range want {
		if c := plain.Choices[i]; c.Text != w || c.Index != i {
			t.Errorf("plain choice %d: %d %q, want %q", i, c.Index, c.Text, w)
		}
		if got := text(chunks, i); got != w {
			t.Errorf("streamed choice %d: %q, want %q", i, got, w)
		}
	}
	for _, c := range chunks {
		if c.Choices[0].FinishReason != nil {
			finished++
		}
		if c.ID != chunks[0].ID || c.Object != "completion" || c.Created == 0 || c.Model != "scripted" {
			t.Errorf("chunk %+v", c)
		}
	}
	if finished != 4 || plain.Usage.PromptTokens != 3 || plain.Usage.CompletionTokens != 4+4+5+5 {
		t.Errorf("%d finished, usage %+v", finished, *plain.Usage)
	}
	wantError(t, b.complete(`{"prompt":["a","b"],"n":9}`), 400, "invalid_value", "prompt")
	wantError(t, b.complete(`{"prompt":"a","n":17}`), 400, "invalid_value", "n")
	wantError(t, b.complete(`{"prompt":"a","n":0}`), 400, "invalid_value", "n")
	wantError(t, b.complete(`{"prompt":["`+strings.Repeat(`a","`, 16)+`a"]}`), 400, "invalid_value", "prompt")
}

// If one choice is refused, the others are cancelled and none is answered.
func TestOneRefusedChoiceRefusesAll(t *testing.T) {
	b := start(t, setup{script: endless("x"), options: appliancetest.Options{Context: 64}})
	r := b.complete(`{"prompt":["a","` + strings.Repeat("p", 100) + `"],"max_completion_tokens":50,"stream":true}`)
	wantError(t, r, 400, "context_length_exceeded", "prompt")
	eventually(t, "the first is closed", func() bool { return len(b.recorder.Ended()) == len(b.recorder.Begun()) })
}

// Seeds of the choices of one prompt count up, so that their texts differ.
func TestSeedsOfChoices(t *testing.T) {
	b := start(t, setup{model: appliancetest.NewHashed(appliancetest.Options{})})
	c := b.answer(`{"prompt":"p","n":3,"seed":7,"max_completion_tokens":8}`)
	second := b.answer(`{"prompt":"p","seed":8,"max_completion_tokens":8}`)
	if c.Choices[0].Text == c.Choices[1].Text || c.Choices[1].Text != second.Choices[0].Text {
		t.Errorf("%q, %q; alone %q", c.Choices[0].Text, c.Choices[1].Text, second.Choices[0].Text)
	}
}
