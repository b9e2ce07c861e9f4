package main

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The walks of somebody who double-clicks the program.

// desk is an empty home with a browser that notes the address it is sent to.
type desk struct {
	home, urls string
	env        []string
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{home: t.TempDir()}
	d.urls = filepath.Join(t.TempDir(), "urls")
	script := filepath.Join(filepath.Dir(d.urls), "browser.sh")
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho \"$1\" >> '"+d.urls+"'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	d.env = cleanEnv(d.home, "BROWSER="+script, "DISPLAY=:0")
	return d
}

// lmStudio puts the tiny model where LM Studio keeps its models.
func (d *desk) lmStudio(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(tinyModel)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(d.home, ".lmstudio/models/a/b/M.gguf")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// opened waits for the n-th address the browser was sent to.
func (d *desk) opened(t *testing.T, n int) string {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		b, _ := os.ReadFile(d.urls) // it is there once the browser ran
		if lines := strings.Split(strings.TrimSpace(string(b)), "\n"); len(b) > 0 && len(lines) >= n {
			return lines[n-1]
		}
	}
	t.Fatalf("the browser was opened fewer than %d times", n)
	return ""
}

// A2: the browser opens at once, the port answers, and a second start opens the
// same page and ends.
func TestWalkDesktopStart(t *testing.T) {
	d := newDesk(t)
	d.lmStudio(t)
	binaryPath(t)
	began := time.Now()
	p := launch(t, d.env)
	url := d.opened(t, 1)
	if took := time.Since(began); took > 3*time.Second {
		t.Errorf("the browser opened after %v", took)
	} else {
		t.Logf("the browser opened after %v", took)
	}
	base, token, ok := strings.Cut(url, "/#token=")
	if !ok || !strings.HasPrefix(base, "http://127.0.0.1:") || len(token) < 32 {
		t.Fatalf("opened %q", url)
	}
	p.url = base
	r, err := http.Get(base + "/")
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != http.StatusOK {
		t.Errorf("the page answers %d", r.StatusCode)
	}
	second := launch(t, d.env)
	<-second.done
	if err := second.cmd.Wait(); err != nil {
		t.Errorf("the second start ended with %v:\n%s", err, second.output())
	}
	if again := d.opened(t, 2); again != url {
		t.Errorf("the second start opened %q, want %q", again, url)
	}
	// The management routes ask for the token.
	if code := p.get("/v1/log", nil); code != http.StatusUnauthorized {
		t.Errorf("the log without the token: status %d", code)
	}
}

// A2's partner: a note left by a process that is gone does not fool the next start.
func TestWalkDesktopStaleInstance(t *testing.T) {
	d := newDesk(t)
	p := launch(t, d.env)
	first := d.opened(t, 1)
	p.kill()
	q := launch(t, d.env)
	second := d.opened(t, 2)
	if second == first {
		t.Errorf("the new process has the old address and token: %s", second)
	}
	if !q.waitLine("listening on ") {
		t.Errorf("the second start does not serve:\n%s", q.output())
	}
}

// A3, A6: the model of LM Studio is used in place, and nothing is written outside
// our own folders.
func TestWalkDesktopUsesTheModelInPlace(t *testing.T) {
	d := newDesk(t)
	model := d.lmStudio(t)
	before, err := os.Stat(model)
	if err != nil {
		t.Fatal(err)
	}
	p := launch(t, d.env)
	d.opened(t, 1)
	if !p.waitLine("listening on ") {
		t.Fatal(p.output())
	}
	p.ready()
	var models struct {
		Data []struct {
			ID, Source string
			Loaded     bool
		}
	}
	p.get("/v1/models", &models)
	if len(models.Data) == 0 || models.Data[0].Source != "LM Studio" || !models.Data[0].Loaded {
		t.Errorf("models: %+v", models.Data)
	}
	if code, body := p.complete(`{"prompt":"The capital of France is","max_completion_tokens":4}`); code != http.StatusOK {
		t.Errorf("status %d: %s", code, body)
	}
	if err := p.stop(); err != nil {
		t.Errorf("ended with %v", err)
	}
	after, err := os.Stat(model)
	if err != nil || !os.SameFile(before, after) || after.ModTime() != before.ModTime() {
		t.Errorf("the model was touched: %v", err)
	}
	for _, path := range d.files(t) {
		rel, _ := filepath.Rel(d.home, path)
		ours := strings.HasPrefix(rel, ".config/ganglion/") || strings.HasPrefix(rel, ".local/share/ganglion/") ||
			strings.HasPrefix(rel, ".local/state/ganglion/") || strings.HasPrefix(rel, ".cache/ganglion/")
		if !ours && path != model {
			t.Errorf("a file outside our folders: %s", rel)
		}
	}
}

func (d *desk) files(t *testing.T) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(d.home, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// A8: without a GPU library it runs on the CPU and says so in one plain sentence.
func TestWalkDesktopWithoutGPU(t *testing.T) {
	d := newDesk(t)
	d.lmStudio(t)
	p := launch(t, d.env)
	url := d.opened(t, 1)
	if !p.waitLine("listening on ") {
		t.Fatal(p.output())
	}
	p.ready()
	_, token, _ := strings.Cut(url, "/#token=")
	req, _ := http.NewRequest("GET", p.url+"/v1/status", nil)
	req.Header.Set("Authorization", "Bearer "+token)
	var status struct {
		Notes []string
		Model struct{ Backend string }
	}
	decode(t, req, &status)
	if status.Model.Backend != "cpu" || len(status.Notes) == 0 || !strings.Contains(strings.Join(status.Notes, " "), "CPU") {
		t.Errorf("status: %+v", status)
	}
}
