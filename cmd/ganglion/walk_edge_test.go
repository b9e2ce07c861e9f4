package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"ganglion/appliance"
	"ganglion/storage"
)

// The walks of somebody who points an HTTP client at an edge device.

func serveTiny(t testing.TB, home string, more ...string) *process {
	t.Helper()
	model, err := filepath.Abs(tinyModel)
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{"serve", "--listen", "127.0.0.1:0", "--model", model, "--data", filepath.Join(home, "data")}, more...)
	p := start(t, cleanEnv(home), args...)
	p.ready()
	return p
}

// B2: the port is open at once, /healthz is 200 only when a token can be produced.
func TestWalkHealth(t *testing.T) {
	home := t.TempDir()
	binaryPath(t) // built before the clock starts
	model, _ := filepath.Abs(tinyModel)
	began := time.Now()
	p := start(t, cleanEnv(home), "serve", "--listen", "127.0.0.1:0", "--model", model, "--data", home)
	c, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
	t.Logf("port open %v after the start of the process", time.Since(began))
	p.ready()
	if code, body := p.complete(`{"prompt":"a","max_completion_tokens":1}`); code != http.StatusOK {
		t.Errorf("healthy, but a completion answers %d: %s", code, body)
	}
}

// B2: without a model /healthz answers 503 with Retry-After, and so do completions.
func TestWalkHealthWithoutModel(t *testing.T) {
	home := t.TempDir()
	p := start(t, cleanEnv(home), "serve", "--listen", "127.0.0.1:0", "--data", home)
	r, err := http.Get(p.url + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusServiceUnavailable || r.Header.Get("Retry-After") == "" {
		t.Errorf("status %d, Retry-After %q", r.StatusCode, r.Header.Get("Retry-After"))
	}
	if code, body := p.complete(`{"prompt":"a"}`); code != http.StatusServiceUnavailable || !strings.Contains(body, `"no_model"`) {
		t.Errorf("completion answers %d: %s", code, body)
	}
}

// B6: a remote address needs a key, and the error names the flag.
func TestWalkRemoteAddressNeedsAKey(t *testing.T) {
	home := t.TempDir()
	keyFile := filepath.Join(home, "key")
	if err := os.WriteFile(keyFile, []byte("secret-key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := launch(t, cleanEnv(home), "serve", "--listen", "0.0.0.0:0", "--data", home)
	<-p.done
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != exitUsage {
		t.Errorf("ended with %v, want exit code %d", err, exitUsage)
	}
	if out := p.output(); !strings.Contains(out, "--key-file") {
		t.Errorf("the error does not name the flag:\n%s", out)
	}
	// The partner: with a key it serves, and asks for it. (Loopback here: tests
	// listen nowhere else.)
	q := serveTiny(t, home, "--key-file", keyFile)
	if code, _ := q.complete(`{"prompt":"a"}`); code != http.StatusUnauthorized {
		t.Errorf("without the key: status %d", code)
	}
	req, _ := http.NewRequest("POST", q.url+"/v1/completions", strings.NewReader(`{"prompt":"a","max_completion_tokens":1}`))
	req.Header.Set("Authorization", "Bearer secret-key")
	req.Header.Set("Content-Type", "application/json")
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusOK {
		t.Errorf("with the key: status %d", r.StatusCode)
	}
}

// B6: hosts and origins.
func TestWalkHostsAndOrigins(t *testing.T) {
	p := serveTiny(t, t.TempDir())
	tests := []struct {
		name         string
		host         string
		header, from string
		status       int
		cors         bool
	}{
		{"wrong host", "evil.example", "", "", 403, false},
		{"foreign origin", "", "Origin", "http://evil.example", 403, false},
		{"fetch mode without origin", "", "Sec-Fetch-Mode", "cors", 200, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			req, _ := http.NewRequest("POST", p.url+"/v1/completions", strings.NewReader(`{"prompt":"a","max_completion_tokens":1}`))
			req.Host = tt.host
			req.Header.Set("Content-Type", "application/json")
			if tt.header != "" {
				req.Header.Set(tt.header, tt.from)
			}
			r, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			r.Body.Close()
			if r.StatusCode != tt.status || (r.Header.Get("Access-Control-Allow-Origin") != "") != tt.cors {
				t.Errorf("status %d with Access-Control-Allow-Origin %q, want %d", r.StatusCode, r.Header.Get("Access-Control-Allow-Origin"), tt.status)
			}
		})
	}
}

// B9: a thousand requests leave no trace but their rows.
func TestWalkThousandRequests(t *testing.T) {
	home := t.TempDir()
	p := serveTiny(t, home)
	const n = 1000
	request := func(i int) {
		if code, body := p.complete(fmt.Sprintf(`{"prompt":"request %d","max_completion_tokens":2,"seed":%d}`, i, i)); code != http.StatusOK {
			t.Fatalf("request %d: status %d: %s", i, code, body)
		}
	}
	for i := range n / 2 { // the first half warms pools, caches and buckets up
		request(i)
	}
	before := rss(t, p.cmd.Process.Pid)
	routines := metric(t, p, "go_goroutines")
	for i := n / 2; i < n; i++ {
		request(i)
	}
	after := rss(t, p.cmd.Process.Pid)
	if grown := float64(after-before) / float64(before); grown > 0.02 {
		t.Errorf("memory grew from %d to %d KiB: %.1f %%", before, after, 100*grown)
	}
	if now := metric(t, p, "go_goroutines"); now > routines+1 {
		t.Errorf("%v goroutines, %v before", now, routines)
	}
	if got := metric(t, p, `ganglion_completions_total`); got != n {
		t.Errorf("the metrics count %v completions, want %d", got, n)
	}
	http.DefaultClient.CloseIdleConnections()
	if err := p.stop(); err != nil {
		t.Errorf("ended with %v", err)
	}
	if got := countRows(t, filepath.Join(home, "data", "ganglion.db"), ""); got != n {
		t.Errorf("%d rows in the log, want %d", got, n)
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
	r, err := http.Get(p.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	sum, found := 0.0, false
	for s := bufio.NewScanner(r.Body); s.Scan(); {
		rest, ok := strings.CutPrefix(s.Text(), name)
		if !ok || (rest[0] != ' ' && rest[0] != '{') {
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

// countRows opens the log as the next start would and counts its rows.
func countRows(t *testing.T, path string, outcome appliance.Outcome) int {
	t.Helper()
	log, err := storage.Open(storage.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	n := 0
	for before := ""; ; {
		rows, next, err := log.List(context.Background(), appliance.RecordQuery{Limit: 500, Before: before, Outcome: outcome})
		if err != nil {
			t.Fatal(err)
		}
		n += len(rows)
		if next == "" {
			return n
		}
		before = next
	}
}

// B10, A9: a power cut in the middle of a request leaves a sound log that lacks at
// most one row, and the request is marked interrupted.
func TestWalkPowerCut(t *testing.T) {
	home := t.TempDir()
	p := serveTiny(t, home, "--context", "32768")
	const n = 50
	for i := range n {
		if code, body := p.complete(`{"prompt":"a","max_completion_tokens":1}`); code != http.StatusOK {
			t.Fatalf("request %d: %d %s", i, code, body)
		}
	}
	// The last request streams without end; the process dies after its first chunk.
	r, err := http.Post(p.url+"/v1/completions", "application/json",
		strings.NewReader(`{"prompt":"a","max_completion_tokens":30000,"logit_bias":{"2":-100},"stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(r.Body).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	p.kill()
	r.Body.Close()
	path := filepath.Join(home, "data", "ganglion.db")
	if got := countRows(t, path, ""); got < n || got > n+1 {
		t.Errorf("%d rows after the power cut, want %d or %d", got, n, n+1)
	}
	if got := countRows(t, path, appliance.OutcomeInterrupted); got != 1 {
		t.Errorf("%d rows are marked interrupted, want 1", got)
	}
	if got := countRows(t, path, appliance.OutcomeOpen); got != 0 {
		t.Errorf("%d rows are still open", got)
	}
}
