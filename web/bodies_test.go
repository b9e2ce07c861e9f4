package web

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ganglion/appliance"
	"ganglion/web/api"
)

func TestBodyLimits(t *testing.T) {
	b := start(t, setup{script: endless("x"), config: Config{MaxBody: 1000}})
	b.answer(`{"prompt":"a","max_completion_tokens":1,"x":"` + strings.Repeat("x", 900) + `"}`)
	long := `{"prompt":"` + strings.Repeat("x", 1000) + `"}`
	wantError(t, b.complete(long), 413, "body_too_large", "")
	r := b.request("POST", "/v1/completions", "")
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(long)), -1 // chunked
	resp, err := b.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 413 {
		t.Errorf("chunked: %d", resp.StatusCode)
	}
	wantError(t, b.complete(`{}`, "Content-Encoding", "gzip"), 415, "unsupported_encoding", "")
	// Any content type is read as JSON, since clients send all of them.
	for _, ct := range []string{"text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-8", "nonsense"} {
		req := b.request("POST", "/v1/completions", `{"prompt":"a","max_completion_tokens":1}`)
		req.Header.Set("Content-Type", ct)
		resp, err := b.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Errorf("%s: %d", ct, resp.StatusCode)
		}
	}
}

// Large bodies wait for each other's memory; one that waits too long is told when
// to come again.
func TestBodiesShareAMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(t, setup{pipes: true, script: endless("x"), config: Config{MaxBody: 1 << 20, MaxBodies: 1 << 20, BodyTimeout: 100 * time.Millisecond}})
		held, err := b.server.reserve(t.Context(), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		large := `{"prompt":"a","max_completion_tokens":1,"x":"` + strings.Repeat("x", 200_000) + `"}`
		wantError(t, b.complete(large), 503, "queue_full", "")
		b.answer(`{"prompt":"a","max_completion_tokens":1}`)
		held.release()
		b.answer(large)
		if !b.server.bodies.TryAcquire(1 << 20) {
			t.Error("the memory of an answered request is still taken")
		}
	})
}

// A chunked body reserves as much as may come only while it is read: its answer may
// take minutes, and others must not wait for it. The partner is TestBodiesShareAMemory:
// what is held makes others wait.
func TestChunkedBodiesHoldOnlyWhatCame(t *testing.T) {
	b, gate := gated(t, setup{script: endless("x"), config: Config{MaxBody: 1 << 20, MaxBodies: 1 << 20, BodyTimeout: 5 * time.Minute}})
	const n = 3 // each reserves all of the memory
	answers := make(chan int, n)
	for range n {
		r := b.request("POST", "/v1/completions", `{"prompt":"a","max_completion_tokens":1}`)
		r.ContentLength, r.Body = -1, io.NopCloser(strings.NewReader(`{"prompt":"a","max_completion_tokens":1}`))
		go func() {
			resp, err := b.client.Do(r)
			if err != nil {
				answers <- 0
				return
			}
			resp.Body.Close()
			answers <- resp.StatusCode
		}()
	}
	eventually(t, "all were taken", func() bool { return len(b.recorder.Begun()) == n })
	for done := 0; done < n; {
		select {
		case gate <- struct{}{}:
		case status := <-answers:
			done++
			if status != http.StatusOK {
				t.Errorf("status %d", status)
			}
		}
	}
	if !b.server.bodies.TryAcquire(1 << 20) {
		t.Error("the memory of answered requests is still taken")
	}
}

func TestErrorBodiesAreBounded(t *testing.T) {
	e := &appliance.Error{Code: appliance.CodeInvalid, Message: strings.Repeat("\x01é", 5000), Param: strings.Repeat("é", 500)}
	b := errorBody(e)
	if len(b) > maxErrorBody {
		t.Errorf("%d bytes", len(b))
	}
	parse[api.ErrorBody](t, string(b))
}
