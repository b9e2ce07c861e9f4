package main

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Model files in the places and states in which they are met.

// F66: a model folder that cannot be written to, as a normal user.
func TestReadOnlyModelFolder(t *testing.T) {
	dir := t.TempDir()
	folder := filepath.Join(dir, "models")
	model := filepath.Join(folder, "m.gguf")
	copyFile(t, tinyModel, model, 0o444)
	program := filepath.Join(dir, "ganglion") // where a normal user may run it
	copyFile(t, binaryPath(t), program, 0o755)
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(folder, 0o555); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(folder, 0o755) }) // so that it can be removed
	cmd := exec.Command(program, "serve", "--listen", "127.0.0.1:0", "--model", model)
	cmd.Env, cmd.Dir = cleanEnv(home), "/"
	if os.Geteuid() == 0 { // root may write anywhere: be somebody else
		const nobody = 65534
		if err := os.Chown(home, nobody, nobody); err != nil {
			t.Fatal(err)
		}
		for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
			if err := os.Chmod(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	}
	p := launchCmd(t, cmd)
	p.address()
	p.ready()
	p.answers()
	p.stop()
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 1 {
		t.Errorf("the model folder holds %v: %v", entries, err)
	}
	if _, err := os.Stat(filepath.Join(home, ".local/state/ganglion/ganglion.db")); err != nil {
		t.Errorf("the log is not in the user's own folder: %v", err)
	}
}

// F66: a file that is cut short while it serves is an error and not a crash, and the
// next model is served.
func TestModelTruncatedWhileServing(t *testing.T) {
	home := t.TempDir()
	folder := filepath.Join(home, "data", "models")
	model, other := filepath.Join(folder, "cut.gguf"), filepath.Join(folder, "whole.gguf")
	copyFile(t, tinyModel, model, 0o644)
	copyFile(t, "../../gpu/engine/testdata/arch/llama-dense.gguf", other, 0o644)
	p := serveTiny(t, home, "--model", model, "--numerics", "exact")
	p.answers()
	if err := os.Truncate(model, 4096); err != nil {
		t.Fatal(err)
	}
	// Another prompt than before, so that nothing of it is cached.
	code, body := p.complete(`{"prompt":"Something else entirely","max_completion_tokens":4}`)
	if code != http.StatusInternalServerError || !strings.Contains(body, `"internal_error"`) {
		t.Errorf("status %d: %s", code, body)
	}
	p.load(other, "")
	p.waitLine("loaded whole ")
	for s := (status{}); s.Model == nil || s.Model.Name != "whole"; { // a moment after the line
		p.get("/v1/status", &s)
	}
	p.answers()
	p.stop()
}

// F62, F66: a model that does not load leaves the one that serves in place.
func TestBrokenModelLeavesTheServingOne(t *testing.T) {
	home := t.TempDir()
	broken := filepath.Join(home, "data", "models", "broken.gguf")
	copyFile(t, tinyModel, broken, 0o644)
	if err := os.Truncate(broken, 100_000); err != nil {
		t.Fatal(err)
	}
	p := serveTiny(t, home)
	p.load(broken, "")
	if l := p.waitLine("model did not load"); !strings.Contains(l, "broken.gguf: ") {
		t.Errorf("the line does not say why: %s", l)
	}
	var s status
	p.get("/v1/status", &s)
	if s.State != "ready" || s.Model == nil || s.Model.Name != "gemma3-dense" || !strings.Contains(s.Error, "broken.gguf: ") {
		t.Errorf("status: %+v", s)
	}
	p.answers()
	status, _, body := p.request("POST", "/v1/models/load", `{"id":"no-such-model"}`)
	if status != http.StatusNotFound {
		t.Errorf("an unknown id: status %d: %s", status, body)
	}
	p.answers()
	p.stop()
}

// F67: any legal path works, for the model and for the data folder, and is shown as
// it is.
func TestAnyLegalPath(t *testing.T) {
	names := map[string]string{
		"scripts and quotes": `Загрузки/模型 ü 🦙/a'b"c $x.gguf`,
		"decomposed":         "u\u0308/u\u0308.gguf",
		"long":               strings.Repeat("n", 245) + ".gguf",
		"leading dash":       "-m/--model.gguf",
	}
	for name, rel := range names {
		t.Run(name, func(t *testing.T) {
			home := filepath.Join(t.TempDir(), filepath.Dir(rel), "home")
			if err := os.MkdirAll(home, 0o755); err != nil {
				t.Fatal(err)
			}
			model := filepath.Join(home, rel)
			copyFile(t, tinyModel, model, 0o644)
			p := serveTiny(t, home, "--model", model)
			var models struct {
				Data []struct{ ID, Path string }
			}
			p.get("/v1/models", &models)
			want := strings.TrimSuffix(filepath.Base(rel), ".gguf")
			if len(models.Data) == 0 || models.Data[0].ID != want || models.Data[0].Path != model {
				t.Errorf("models %+v, want %q at %q", models.Data, want, model)
			}
			p.answers()
			p.stop()
			rows := logRows(t, filepath.Join(home, "data", "ganglion.db"), "")
			if len(rows) != 1 || rows[0].Model != want {
				t.Errorf("rows: %+v", rows)
			}
		})
	}
}

// F68: nothing is unpacked, so the temporary folder may be missing or closed.
func TestWithoutTemporaryFolder(t *testing.T) {
	for name, dir := range map[string]string{"missing": "/nonexistent/tmp", "not a folder": "/dev/null", "not writable": "/proc"} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			p := start(t, []string{"HOME=" + home, "TMPDIR=" + dir, "SQLITE_TMPDIR=" + dir, "GORACE=" + quickEnd}, "serve", "--listen", "127.0.0.1:0", "--model", tinyPath(t))
			p.ready()
			p.answers()
			p.stop()
		})
	}
}
