package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"ganglion/web/api"

	"github.com/rogpeppe/go-internal/testscript"
)

// tinyModel is a model of a few hundred kilobytes with known logits.
const tinyModel = "../../gpu/engine/testdata/arch/gemma3-dense.gguf"

// patience bounds every wait for an event: far beyond what a loaded machine needs.
const patience = 3 * time.Minute

// TestMain puts the program into PATH as "ganglion": the test binary itself under
// this name, so that the tests run the real main and nothing is built twice.
func TestMain(m *testing.M) {
	testscript.Main(cleaning{m}, map[string]func(){"ganglion": main})
}

// cleaning removes what the tests have built.
type cleaning struct{ m *testing.M }

func (c cleaning) Run() int {
	defer os.RemoveAll(plainDir)
	return c.m.Run()
}

// binaryPath is the program under test.
func binaryPath(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("ganglion")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var plainDir string // holds the plain program; empty: none was built

// buildPlain builds the program once. The flags are the usual ones, so that most of
// it comes from the cache that `go vet` and other tests have filled.
var buildPlain = sync.OnceValues(func() (string, error) {
	var err error
	if plainDir, err = os.MkdirTemp("", "ganglion-plain"); err != nil {
		return "", err
	}
	path := filepath.Join(plainDir, "ganglion")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

// plainPath is the program without the race detector, whose own memory and slowness
// would hide the program's: for tests that measure. GANGLION_BIN names one that is
// built already.
func plainPath(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("GANGLION_BIN"); path != "" {
		return path
	}
	if !raceEnabled {
		return binaryPath(t)
	}
	path, err := buildPlain()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// needsCompiler leaves tests out that load scripts in a program with the race detector, which
// takes longer to compile their interpreter than loading may; build.sh runs them without it.
func needsCompiler(t testing.TB) {
	t.Helper()
	if raceEnabled {
		t.Skip("runs without the race detector")
	}
}

// tinyPath is the absolute path of the tiny model.
func tinyPath(t testing.TB) string {
	t.Helper()
	path, err := filepath.Abs(tinyModel)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// copyFile copies a file, with all folders to it.
func copyFile(t testing.TB, from, to string, mode os.FileMode) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, b, mode); err != nil {
		t.Fatal(err)
	}
}

// quickEnd keeps the race detector from waiting a second at the end of every process.
const quickEnd = "atexit_sleep_ms=10"

// cleanEnv is an environment with an empty home and nothing of ours in it.
func cleanEnv(home string, more ...string) []string {
	env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir(), "GORACE=" + quickEnd}
	return append(env, more...)
}

// process is a started program whose stderr is collected.
type process struct {
	t    testing.TB
	cmd  *exec.Cmd
	url  string
	done chan struct{} // closed when it has ended and err is set
	err  error

	mu    sync.Mutex
	lines []string
	grown chan struct{} // closed and replaced with every line
}

// start runs the program and waits for its address.
func start(t testing.TB, env []string, args ...string) *process {
	t.Helper()
	p := launch(t, env, args...)
	p.address()
	return p
}

// launch runs the program and collects its stderr in the background.
func launch(t testing.TB, env []string, args ...string) *process {
	t.Helper()
	return launchPath(t, binaryPath(t), env, args...)
}

func launchPath(t testing.TB, path string, env []string, args ...string) *process {
	t.Helper()
	cmd := exec.Command(path, args...)
	cmd.Env = env
	cmd.Dir = t.TempDir()
	return launchCmd(t, cmd)
}

func launchCmd(t testing.TB, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{t: t, cmd: cmd, done: make(chan struct{}), grown: make(chan struct{})}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.collect(stderr)
	t.Cleanup(p.kill)
	return p
}

// collect reads stderr to its end and then waits for the process.
func (p *process) collect(r io.Reader) {
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		p.mu.Lock()
		p.lines = append(p.lines, s.Text())
		close(p.grown)
		p.grown = make(chan struct{})
		p.mu.Unlock()
	}
	p.err = p.cmd.Wait()
	close(p.done)
}

// waitLine waits for a line that holds the mark.
func (p *process) waitLine(mark string) string {
	p.t.Helper()
	late := time.After(patience)
	for from, ended := 0, false; ; {
		p.mu.Lock()
		lines, grown := p.lines[from:], p.grown
		p.mu.Unlock()
		for _, l := range lines {
			if strings.Contains(l, mark) {
				return l
			}
		}
		from += len(lines)
		if ended {
			p.t.Fatalf("the program ended (%v) without %q:\n%s", p.err, mark, p.output())
		}
		select {
		case <-grown:
		case <-p.done:
			ended = true
		case <-late:
			p.t.Fatalf("no line with %q in %v:\n%s", mark, patience, p.output())
		}
	}
}

// serves waits until the program listens or has ended, and tells which.
func (p *process) serves() bool {
	p.t.Helper()
	const mark = "listening on "
	late := time.After(patience)
	for {
		p.mu.Lock()
		grown := p.grown
		p.mu.Unlock()
		if strings.Contains(p.output(), mark) {
			return true
		}
		select {
		case <-grown:
		case <-p.done: // and all that it said is there
			return strings.Contains(p.output(), mark)
		case <-late:
			p.t.Fatalf("after %v it neither listens nor has ended:\n%s", patience, p.output())
		}
	}
}

// address waits until the program says where it listens.
func (p *process) address() {
	p.t.Helper()
	const mark = "listening on "
	_, rest, _ := strings.Cut(p.waitLine(mark), mark)
	p.url = strings.Fields(rest)[0]
}

// wait waits for the end and returns the exit code.
func (p *process) wait() int {
	p.t.Helper()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.t.Fatalf("the program still runs after %v:\n%s", patience, p.output())
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// kill ends the process at once, as a power cut would.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.done
}

// stop asks the process to end and expects that it does so in order.
func (p *process) stop() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		p.t.Fatal(err)
	}
	if code := p.wait(); code != exitOK {
		p.t.Errorf("ended with code %d:\n%s", code, p.output())
	}
}

// ready waits until the model answers.
func (p *process) ready() {
	p.t.Helper()
	p.waitLine("loaded ")
	// Between the line and the switch to the model is a moment only.
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if p.get("/healthz", nil) == http.StatusOK {
			return
		}
	}
	p.t.Fatalf("the model was not ready in %v:\n%s", patience, p.output())
}

// send sends a request and returns status, headers and body. It may be called from
// any goroutine.
func (p *process) send(method, path, body string, headers ...string) (int, http.Header, string, error) {
	req, err := http.NewRequest(method, p.url+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, "", err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
		} else {
			req.Header.Set(headers[i], headers[i+1])
		}
	}
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, "", err
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	return r.StatusCode, r.Header, string(b), err
}

// request sends a request that must be answered, whatever the answer is.
func (p *process) request(method, path, body string, headers ...string) (int, http.Header, string) {
	p.t.Helper()
	status, header, answer, err := p.send(method, path, body, headers...)
	if err != nil {
		p.t.Fatalf("%s %s: %v\n%s", method, path, err, p.output())
	}
	return status, header, answer
}

// get fetches a JSON document, unless into is nil, and returns the status.
func (p *process) get(path string, into any, headers ...string) int {
	p.t.Helper()
	status, _, body := p.request("GET", path, "", headers...)
	if into != nil {
		if err := json.NewDecoder(bytes.NewBufferString(body)).Decode(into); err != nil {
			p.t.Fatalf("%s: %v: %s", path, err, body)
		}
	}
	return status
}

// row is the log's row of an answer once it is closed, which the answer does not wait for.
func (p *process) row(id string) (rec api.Record) {
	p.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		rec = api.Record{}
		if p.get("/v1/log/"+id, &rec) == http.StatusOK && rec.EndedAt != nil {
			return rec
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("the row of %s is not closed after %v: %+v", id, patience, rec)
		}
	}
}

// complete posts a completion request and returns status and body.
func (p *process) complete(body string) (int, string) {
	p.t.Helper()
	status, _, answer := p.request("POST", "/v1/completions", body)
	return status, answer
}

// completeLoaded is complete for a request with plugins that may still be loading: as a client
// should, it comes again.
func (p *process) completeLoaded(body string) (status int, answer string) {
	p.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		status, answer = p.complete(body)
		if status != http.StatusServiceUnavailable || time.Now().After(deadline) {
			return status, answer
		}
	}
}

// answers checks that a completion is answered.
func (p *process) answers() {
	p.t.Helper()
	if code, body := p.complete(`{"prompt":"The capital of France is","max_completion_tokens":4}`); code != http.StatusOK {
		p.t.Errorf("a completion answers %d: %s", code, body)
	}
}

// load asks for the model file at a path, which must be among those found.
func (p *process) load(path, token string) {
	p.t.Helper()
	auth := []string{"Authorization", "Bearer " + token}
	var found struct {
		Models []struct{ ID, Path string }
	}
	p.get("/v1/models/found", &found, auth...)
	for _, m := range found.Models {
		if m.Path != path {
			continue
		}
		status, _, body := p.request("POST", "/v1/models/load", `{"id":"`+m.ID+`"}`, auth...)
		if status != http.StatusAccepted {
			p.t.Fatalf("load answers %d: %s", status, body)
		}
		return
	}
	p.t.Fatalf("%s is not among the models found: %+v", path, found.Models)
}

// serveArgs serve the tiny model, or what a later --model names.
func serveArgs(t testing.TB, home string, more ...string) []string {
	t.Helper()
	return append([]string{"serve", "--listen", "127.0.0.1:0", "--model", tinyPath(t), "--data", filepath.Join(home, "data")}, more...)
}

func serveTiny(t testing.TB, home string, more ...string) *process {
	t.Helper()
	p := start(t, cleanEnv(home), serveArgs(t, home, more...)...)
	p.ready()
	return p
}

// fastest runs a measurement up to ten times, until it is within the bound, and
// returns the quickest: a processor shared with others makes single runs late.
func fastest(bound time.Duration, measure func() time.Duration) time.Duration {
	best := measure()
	for range 9 {
		if best <= bound {
			break
		}
		best = min(best, measure())
	}
	return best
}
