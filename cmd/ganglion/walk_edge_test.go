package main

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"ganglion/appliance"
	"ganglion/storage"
)

// The walks of somebody who points an HTTP client at an edge device.

// B2: the port is open at once, and /healthz is 200 only when a token can be produced.
func TestWalkHealth(t *testing.T) {
	path := plainPath(t)
	const bound = 500 * time.Millisecond // 50 ms on a quiet machine
	took := fastest(bound, func() time.Duration {
		home := t.TempDir()
		began := time.Now()
		p := launchPath(t, path, cleanEnv(home), serveArgs(t, home)...)
		p.address()
		c, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(began)
		c.Close()
		p.ready()
		p.answers()
		p.stop()
		return took
	})
	t.Logf("port open %v after the start of the process", took)
	if took > bound {
		t.Errorf("port open %v after the start of the process, want at most %v", took, bound)
	}
}

// B2: without a model /healthz answers 503 with Retry-After, and so do completions.
func TestWalkHealthWithoutModel(t *testing.T) {
	home := t.TempDir()
	p := start(t, cleanEnv(home), "serve", "--listen", "127.0.0.1:0", "--data", home)
	status, header, _ := p.request("GET", "/healthz", "")
	if status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" {
		t.Errorf("status %d, Retry-After %q", status, header.Get("Retry-After"))
	}
	status, header, body := p.request("POST", "/v1/completions", `{"prompt":"a"}`)
	if status != http.StatusServiceUnavailable || header.Get("Retry-After") == "" || !strings.Contains(body, `"no_model"`) {
		t.Errorf("a completion answers %d, Retry-After %q: %s", status, header.Get("Retry-After"), body)
	}
}

// B6: a remote address needs a key, and the error names the flag.
func TestWalkRemoteAddressNeedsAKey(t *testing.T) {
	home := t.TempDir()
	p := launch(t, cleanEnv(home), "serve", "--listen", "0.0.0.0:0", "--data", home)
	if code := p.wait(); code != exitUsage {
		t.Errorf("ended with code %d, want %d", code, exitUsage)
	}
	if out := p.output(); !strings.Contains(out, "--key-file") || strings.Contains(out, "listening on") {
		t.Errorf("the error does not name the flag, or it listened:\n%s", out)
	}
	// The partner: with a key it starts.
	keyFile := filepath.Join(home, "key")
	if err := os.WriteFile(keyFile, []byte("secret-key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	q := launch(t, cleanEnv(home), "serve", "--listen", "0.0.0.0:0", "--data", home, "--key-file", keyFile)
	q.waitLine("listening on ")
	q.stop()
}

// B6: with a key, it is asked for.
func TestWalkKey(t *testing.T) {
	home := t.TempDir()
	keyFile := filepath.Join(home, "key")
	if err := os.WriteFile(keyFile, []byte("secret-key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	q := serveTiny(t, home, "--key-file", keyFile)
	const body = `{"prompt":"a","max_completion_tokens":1}`
	for header, want := range map[string]int{"": 401, "Bearer wrong": 401, "Bearer secret-key": 200} {
		if status, _, _ := q.request("POST", "/v1/completions", body, "Authorization", header); status != want {
			t.Errorf("Authorization %q: status %d, want %d", header, status, want)
		}
	}
}

// B6: hosts and origins.
func TestWalkHostsAndOrigins(t *testing.T) {
	p := serveTiny(t, t.TempDir(), "--allow-origin", "http://friend.example")
	tests := []struct {
		name    string
		headers []string
		status  int
		cors    string
	}{
		{"plain", nil, 200, ""},
		{"wrong host", []string{"Host", "evil.example"}, 403, ""},
		{"foreign origin", []string{"Origin", "http://evil.example"}, 403, ""},
		{"listed origin", []string{"Origin", "http://friend.example"}, 200, "http://friend.example"},
		{"fetch mode without origin", []string{"Sec-Fetch-Mode", "cors"}, 200, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			status, header, body := p.request("POST", "/v1/completions", `{"prompt":"a","max_completion_tokens":1}`, tt.headers...)
			if cors := header.Get("Access-Control-Allow-Origin"); status != tt.status || cors != tt.cors {
				t.Errorf("status %d with Access-Control-Allow-Origin %q, want %d with %q: %s", status, cors, tt.status, tt.cors, body)
			}
		})
	}
}

// B9: a thousand requests leave no trace but their rows.
func TestWalkThousandRequests(t *testing.T) {
	home := t.TempDir()
	p := launchPath(t, plainPath(t), cleanEnv(home), serveArgs(t, home)...)
	p.address()
	p.ready()
	routines := metric(t, p, "go_goroutines")
	const warmUp, n = 2000, 1000
	request := func(i int) error {
		code, _, answer, err := p.send("POST", "/v1/completions", fmt.Sprintf(`{"prompt":"request %d","max_completion_tokens":2,"seed":%d}`, i, i))
		if err == nil && code != http.StatusOK {
			err = fmt.Errorf("status %d: %s", code, answer)
		}
		if err != nil {
			return fmt.Errorf("request %d: %w", i, err)
		}
		return nil
	}
	// Pools, the log's page cache and the heap grow to the size they need first.
	var group errgroup.Group
	group.SetLimit(4)
	for i := range warmUp {
		group.Go(func() error { return request(i) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	counted, rounds := metric(t, p, "ganglion_completions_total"), 0
	// What is lost with each request is lost in every round; what grew late is not.
	for grown := 100.0; grown > 2; {
		if rounds++; rounds > 4 {
			t.Fatalf("memory grew by %.1f %% in the last of four rounds", grown)
		}
		before := rss(t, p.cmd.Process.Pid)
		for i := range n {
			if err := request(i); err != nil {
				t.Fatal(err)
			}
		}
		after := rss(t, p.cmd.Process.Pid)
		grown = 100 * float64(after-before) / float64(before)
		t.Logf("memory %d, then %d KiB: %+.2f %%", before, after, grown)
	}
	if now := settledRoutines(t, p, routines); now > routines {
		t.Errorf("%v goroutines, %v at the start", now, routines)
	}
	if got := metric(t, p, "ganglion_completions_total") - counted; got != float64(n*rounds) {
		t.Errorf("the metrics count %v completions, want %d", got, n*rounds)
	}
	if got := metric(t, p, "ganglion_completions_open"); got != 0 {
		t.Errorf("%v completions are open", got)
	}
	tokens := metric(t, p, "ganglion_tokens_total")
	p.stop()
	rows := logRows(t, filepath.Join(home, "data", "ganglion.db"), "")
	if len(rows) != warmUp+n*rounds {
		t.Errorf("%d rows in the log, want %d", len(rows), warmUp+n*rounds)
	}
	sum := 0
	for _, r := range rows {
		sum += r.PromptTokens + r.CachedTokens + r.CompletionTokens
	}
	if tokens != float64(sum) {
		t.Errorf("the metrics count %v tokens, the rows %d", tokens, sum)
	}
}

// settledRoutines waits until the server has at most want goroutines, as it has once it
// noticed that the client's idle connections are closed, and returns the last count.
func settledRoutines(t *testing.T, p *process, want float64) float64 {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); ; <-tick.C {
		http.DefaultClient.CloseIdleConnections()
		now := metric(t, p, "go_goroutines")
		if now <= want || time.Now().After(deadline) {
			return now
		}
	}
}

// rss is the resident memory of a process in KiB.
func rss(t *testing.T, pid int) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			n, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

// metric sums the samples of a metric over its labels.
func metric(t *testing.T, p *process, name string) float64 {
	t.Helper()
	_, _, body := p.request("GET", "/metrics", "")
	sum, found := 0.0, false
	for l := range strings.Lines(body) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(l), name)
		if !ok || rest == "" || (rest[0] != ' ' && rest[0] != '{') {
			continue
		}
		v, err := strconv.ParseFloat(rest[strings.LastIndexByte(rest, ' ')+1:], 64)
		if err != nil {
			t.Fatal(err)
		}
		sum, found = sum+v, true
	}
	if !found {
		t.Fatalf("no metric %s", name)
	}
	return sum
}

// logRows opens the log as the next start would and reads its rows.
func logRows(t *testing.T, path string, outcome appliance.Outcome) []appliance.Record {
	t.Helper()
	log, err := storage.Open(storage.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	rows, err := records(context.Background(), log, appliance.RecordQuery{Outcome: outcome}, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// B10, A9: a power cut in the middle of a request leaves a sound log that lacks at
// most one row, and the request is marked interrupted.
func TestWalkPowerCut(t *testing.T) {
	home := t.TempDir()
	p := serveTiny(t, home, "--context", "200000", "--slots", "1")
	const n = 100
	for i := range n {
		if code, body := p.complete(`{"prompt":"a","max_completion_tokens":1}`); code != http.StatusOK {
			t.Fatalf("request %d: %d %s", i, code, body)
		}
	}
	// The last request would stream for minutes (the bias keeps it from ending); the
	// process dies after its first chunk.
	r, err := http.Post(p.url+"/v1/completions", "application/json",
		strings.NewReader(`{"prompt":"a","max_completion_tokens":190000,"logit_bias":{"2":-100},"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if line, err := bufio.NewReader(r.Body).ReadString('\n'); err != nil || !strings.HasPrefix(line, "data: {") {
		t.Fatalf("first line %q: %v", line, err)
	}
	// The row of that request waits for the log no longer than a moment.
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		var all struct{ Records []struct{ Outcome string } }
		p.get("/v1/log?limit=500", &all)
		open := 0
		for _, r := range all.Records {
			if r.Outcome == string(appliance.OutcomeOpen) {
				open++
			}
		}
		if open == 1 && len(all.Records) == n+1 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d rows are open", open, len(all.Records))
		}
	}
	p.kill()
	path := filepath.Join(home, "data", "ganglion.db")
	// The first opening marks what the dead process left.
	if got := len(logRows(t, path, "")); got != n+1 {
		t.Errorf("%d rows after the power cut, want %d", got, n+1)
	}
	if got := len(logRows(t, path, appliance.OutcomeInterrupted)); got != 1 {
		t.Errorf("%d rows are marked interrupted, want 1", got)
	}
	if got := len(logRows(t, path, appliance.OutcomeOpen)); got != 0 {
		t.Errorf("%d rows are still open", got)
	}
	if moved, _ := filepath.Glob(path + ".damaged*"); len(moved) > 0 {
		t.Errorf("the log counts as damaged: %v", moved)
	}
	// And the next start serves.
	q := serveTiny(t, home)
	q.answers()
	q.stop()
}
