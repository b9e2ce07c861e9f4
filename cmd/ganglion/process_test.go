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
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// tinyModel is a model of a few hundred kilobytes with known logits.
const tinyModel = "../../gpu/engine/testdata/arch/gemma3-dense.gguf"

// buildBinary builds the program once for all tests that need it as a process.
var buildBinary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "ganglion-bin")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "ganglion")
	out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := buildBinary(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

func binaryPath(t testing.TB) string {
	t.Helper()
	path, err := buildBinary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// cleanEnv is an environment with an empty home and nothing of ours in it.
func cleanEnv(home string, more ...string) []string {
	env := []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TMPDIR=" + os.TempDir()}
	return append(env, more...)
}

// process is a started binary whose stderr is collected.
type process struct {
	t    testing.TB
	cmd  *exec.Cmd
	url  string
	done chan struct{}

	mu    sync.Mutex
	lines []string
}

// start runs the binary and waits for its address line.
func start(t testing.TB, env []string, args ...string) *process {
	t.Helper()
	p := launch(t, env, args...)
	if !p.waitLine("listening on ") {
		t.Fatalf("no address was printed:\n%s", p.output())
	}
	return p
}

// launch runs the binary and collects its stderr in the background.
func launch(t testing.TB, env []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(binaryPath(t), args...), done: make(chan struct{})}
	p.cmd.Env = env
	p.cmd.Dir = t.TempDir()
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go p.collect(stderr)
	p.t.Cleanup(p.kill)
	return p
}

func (p *process) collect(r io.Reader) {
	defer close(p.done)
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		p.mu.Lock()
		p.lines = append(p.lines, s.Text())
		p.mu.Unlock()
	}
}

// waitLine waits until a line with the mark was printed and takes the address
// behind it.
func (p *process) waitLine(mark string) bool {
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		p.mu.Lock()
		i := slices.IndexFunc(p.lines, func(l string) bool { return strings.Contains(l, mark) })
		if i >= 0 {
			_, rest, _ := strings.Cut(p.lines[i], mark)
			p.url = strings.TrimSuffix(strings.Fields(rest + " ")[0], "/")
		}
		p.mu.Unlock()
		if i >= 0 {
			return true
		}
		select {
		case <-p.done:
			return false
		default:
		}
	}
	return false
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// kill ends the process at once, as a power cut would.
func (p *process) kill() {
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Process.Kill() // it may have ended by itself
		<-p.done
		_ = p.cmd.Wait() // killed: the error says so
	}
}

// stop asks the process to end and reports how it did.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		return err
	}
	<-p.done
	return p.cmd.Wait()
}

// ready waits until the model can answer.
func (p *process) ready() {
	p.t.Helper()
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		r, err := http.Get(p.url + "/healthz")
		if err != nil {
			continue
		}
		r.Body.Close()
		if r.StatusCode == http.StatusOK {
			return
		}
	}
	p.t.Fatalf("the model was not ready in time:\n%s", p.output())
}

// get fetches a JSON document.
func (p *process) get(path string, into any) int {
	p.t.Helper()
	r, err := http.Get(p.url + path)
	if err != nil {
		p.t.Fatal(err)
	}
	defer r.Body.Close()
	if into != nil {
		if err := json.NewDecoder(r.Body).Decode(into); err != nil {
			p.t.Fatalf("%s: %v", path, err)
		}
	}
	return r.StatusCode
}

// complete posts a completion request and returns status and body.
func (p *process) complete(body string) (int, string) {
	p.t.Helper()
	r, err := http.Post(p.url+"/v1/completions", "application/json", bytes.NewBufferString(body))
	if err != nil {
		p.t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

// decode sends a request and decodes its JSON answer.
func decode(t testing.TB, req *http.Request, into any) {
	t.Helper()
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if err := json.NewDecoder(r.Body).Decode(into); err != nil {
		t.Fatalf("%s: %v", req.URL, err)
	}
}
