package main

import (
	"bufio"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// The walks of somebody who double-clicks the program.

// desk is an empty home with a browser that notes the address it is sent to.
type desk struct {
	home string
	env  []string
	urls chan string // what the browser was sent to
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{home: t.TempDir(), urls: make(chan string, 16)}
	dir := t.TempDir()
	pipe, script := filepath.Join(dir, "urls"), filepath.Join(dir, "browser.sh")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(script, []byte("#!/bin/sh\necho \"$1\" > '"+pipe+"'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	// Open for writing too: the pipe does not end with the first browser.
	r, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	go func() {
		for s := bufio.NewScanner(r); s.Scan(); {
			d.urls <- s.Text()
		}
	}()
	d.env = cleanEnv(d.home, "BROWSER="+script, "DISPLAY=:0")
	return d
}

// lmStudio puts the tiny model where LM Studio keeps its models.
func (d *desk) lmStudio(t *testing.T) string {
	t.Helper()
	path := filepath.Join(d.home, ".lmstudio/models/a/b/M.gguf")
	copyFile(t, tinyModel, path, 0o644)
	return path
}

// opened waits for the next address the browser was sent to.
func (d *desk) opened(t *testing.T) string {
	t.Helper()
	select {
	case url := <-d.urls:
		return url
	case <-time.After(patience):
		t.Fatalf("no browser was opened in %v", patience)
		return ""
	}
}

// files lists the files below the home, relative to it.
func (d *desk) files(t *testing.T) (names []string) {
	t.Helper()
	err := filepath.WalkDir(d.home, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			rel, _ := filepath.Rel(d.home, path) // it is below
			names = append(names, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// A2: the browser opens at once.
func TestWalkDesktopOpensAtOnce(t *testing.T) {
	path := plainPath(t)
	const bound = 3 * time.Second // 300 ms on a quiet machine
	took := fastest(bound, func() time.Duration {
		d := newDesk(t)
		d.lmStudio(t)
		began := time.Now()
		p := launchPath(t, path, d.env)
		d.opened(t)
		took := time.Since(began)
		p.stop()
		return took
	})
	t.Logf("the browser opened after %v", took)
	if took > bound {
		t.Errorf("the browser opened after %v, want at most %v", took, bound)
	}
}

// A2: the browser is sent to an address that answers, and a second start opens the
// same page and ends.
func TestWalkDesktopStart(t *testing.T) {
	d := newDesk(t)
	d.lmStudio(t)
	p := launch(t, d.env)
	url := d.opened(t)
	base, token, ok := strings.Cut(url, "/#token=")
	if !ok || !strings.HasPrefix(base, "http://127.0.0.1:") || len(token) < 32 {
		t.Fatalf("opened %q", url)
	}
	p.url = base
	if code := p.get("/", nil); code != http.StatusOK {
		t.Errorf("the page answers %d", code)
	}
	second := launch(t, d.env)
	if code := second.wait(); code != exitOK {
		t.Errorf("the second start ended with code %d:\n%s", code, second.output())
	}
	if again := d.opened(t); again != url {
		t.Errorf("the second start opened %q, want %q", again, url)
	}
	// The log is for whoever has the token.
	if code := p.get("/v1/log", nil); code != http.StatusUnauthorized {
		t.Errorf("the log without the token: status %d", code)
	}
	if code := p.get("/v1/log", nil, "Authorization", "Bearer "+token); code != http.StatusOK {
		t.Errorf("the log with the token: status %d", code)
	}
	p.stop()
	if files := strings.Join(d.files(t), " "); strings.Contains(files, "instance.json") {
		t.Errorf("the note for a second start is still there: %s", files)
	}
}

// Whoever clicks again and again while nothing is to be seen yet gets one instance.
func TestWalkDesktopImpatient(t *testing.T) {
	d := newDesk(t)
	d.lmStudio(t)
	starts := make([]*process, 4)
	for i := range starts {
		starts[i] = launch(t, d.env)
	}
	pages := map[string]bool{}
	for range starts {
		pages[d.opened(t)] = true
	}
	if len(pages) != 1 {
		t.Errorf("%d pages were opened: %v", len(pages), pages)
	}
	serving := 0
	for _, p := range starts {
		if p.serves() {
			serving++
			p.stop()
		} else if code := p.wait(); code != exitOK {
			t.Errorf("ended with code %d:\n%s", code, p.output())
		}
	}
	if serving != 1 {
		t.Errorf("%d instances", serving)
	}
}

// A2's partner: a note left by a process that is gone does not fool the next start.
func TestWalkDesktopStaleInstance(t *testing.T) {
	d := newDesk(t)
	p := launch(t, d.env)
	first := d.opened(t)
	p.kill()
	q := launch(t, d.env)
	q.address()
	second := d.opened(t)
	if _, token, _ := strings.Cut(first, "#"); strings.HasSuffix(second, token) {
		t.Errorf("the new process has the old token: %s", second)
	}
	if code := q.get("/", nil); code != http.StatusOK {
		t.Errorf("the second start answers %d", code)
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
	p := start(t, d.env)
	d.opened(t)
	p.ready()
	var models struct {
		Data []struct {
			ID, Source, Path string
			Loaded           bool
		}
	}
	p.get("/v1/models", &models)
	if len(models.Data) != 1 || models.Data[0].ID != "M" || models.Data[0].Source != "LM Studio" || !models.Data[0].Loaded {
		t.Errorf("models: %+v", models.Data)
	}
	p.answers()
	p.stop()
	after, err := os.Stat(model)
	if err != nil || !os.SameFile(before, after) || after.ModTime() != before.ModTime() {
		t.Errorf("the model was touched: %v", err)
	}
	logged := false
	for _, name := range d.files(t) {
		logged = logged || name == ".local/state/ganglion/ganglion.db"
		if !inOurFolders(name) && name != ".lmstudio/models/a/b/M.gguf" {
			t.Errorf("a file outside our folders: %s", name)
		}
	}
	if !logged {
		t.Error("there is no log: the check of the folders looked at nothing")
	}
}

// inOurFolders tells whether a file, relative to the home, is where ours belong.
func inOurFolders(name string) bool {
	for _, dir := range []string{".config", ".local/share", ".local/state", ".cache"} {
		if strings.HasPrefix(name, dir+"/ganglion/") {
			return true
		}
	}
	return false
}

// status is what the page learns.
type status struct {
	State   string
	Error   string
	Notes   []string
	Model   *struct{ Name, Backend string }
	Devices []struct{ Name, Backend, State string }
}

// A8: without a GPU library it runs on the CPU and says so in one plain sentence.
func TestWalkDesktopWithoutGPU(t *testing.T) {
	d := newDesk(t)
	d.lmStudio(t)
	p := start(t, d.env)
	_, token, _ := strings.Cut(d.opened(t), "/#token=")
	p.ready()
	var s status
	p.get("/v1/status", &s, "Authorization", "Bearer "+token)
	if s.State != "ready" || s.Model == nil || s.Model.Backend != "cpu" || len(s.Devices) != 1 || s.Devices[0].State != "in use" {
		t.Errorf("status: %+v", s)
	}
	if len(s.Notes) != 1 || !strings.HasSuffix(s.Notes[0], "Ganglion computes on the CPU.") {
		t.Errorf("notes: %q", s.Notes)
	}
}

// A8: without a model there is a page that offers choices, never an error.
func TestWalkDesktopWithoutModel(t *testing.T) {
	d := newDesk(t)
	p := start(t, d.env)
	_, token, _ := strings.Cut(d.opened(t), "/#token=")
	p.waitLine("no model was found")
	if code := p.get("/", nil); code != http.StatusOK {
		t.Errorf("the page answers %d", code)
	}
	var s status
	if code := p.get("/v1/status", &s, "Authorization", "Bearer "+token); code != http.StatusOK || s.State != "no_model" || s.Error != "" || s.Model != nil {
		t.Errorf("status %d: %+v", code, s)
	}
	// A model that is put in place and chosen is served.
	model := d.lmStudio(t)
	p.load(model, token)
	p.ready()
	p.answers()
}

// A model named by hand that is none does not end the desktop mode: nobody would see
// why. The page says it.
func TestWalkDesktopShowsABrokenModel(t *testing.T) {
	d := newDesk(t)
	broken := filepath.Join(d.home, "broken.gguf")
	if err := os.WriteFile(broken, []byte("GGUF"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, append(d.env, "GANGLION_MODEL="+broken))
	_, token, _ := strings.Cut(d.opened(t), "/#token=")
	p.waitLine("model did not load")
	var s status
	p.get("/v1/status", &s, "Authorization", "Bearer "+token)
	if s.State != "no_model" || !strings.Contains(s.Error, "broken.gguf: byte 4") {
		t.Errorf("status: %+v", s)
	}
}

// The appliance form: a bundled program, copied away, serves the model inside it when
// it is started with no arguments in an empty home.
func TestWalkAppliance(t *testing.T) {
	d := newDesk(t)
	dir := t.TempDir()
	bundle := launch(t, cleanEnv(dir), "bundle", "--model", tinyPath(t), "--out", filepath.Join(dir, "bundled"))
	if code := bundle.wait(); code != exitOK {
		t.Fatalf("bundle ended with code %d:\n%s", code, bundle.output())
	}
	moved := filepath.Join(t.TempDir(), "ganglion") // the name under which the test binary is the program
	copyFile(t, filepath.Join(dir, "bundled"), moved, 0o755)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	p := launchPath(t, moved, d.env)
	p.address()
	d.opened(t)
	p.ready()
	var models struct {
		Data []struct {
			Source, Path string
			Loaded       bool
		}
	}
	p.get("/v1/models", &models)
	if len(models.Data) != 1 || models.Data[0].Source != "embedded" || models.Data[0].Path != moved || !models.Data[0].Loaded {
		t.Errorf("models: %+v", models.Data)
	}
	p.answers()
	p.stop()
}
