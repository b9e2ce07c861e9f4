package sdk

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ganglion/plugins/wasm"
	"ganglion/plugins/wasm/wasmtest"
)

// TestNewAndBuild goes from an empty folder to a module in each language. The test
// TestFirstFiveMinutes of cmd/ganglion walks on from there to a plugin that a server runs;
// the examples of all are run beside each other by plugins/builtin's tests.
func TestNewAndBuild(t *testing.T) {
	for _, lang := range Languages() {
		t.Run(lang, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "mine")
			if err := New(dir, lang, "my-plugin"); err != nil {
				t.Fatal(err)
			}
			if err := New(dir, lang, "my-plugin"); err == nil {
				t.Error("a plugin is begun over another")
			}
			b, err := Build(context.Background(), dir)
			if errors.Is(err, ErrNoToolchain) && !wasmtest.Required() {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			m, err := wasm.Parse(b)
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"memory", "gg_abi_1", "gg_alloc", "gg_open", "gg_logits"} {
				if _, ok := m.Export(name); !ok {
					t.Errorf("%s is not exported", name)
				}
			}
			if manifest, _ := m.Custom("ganglion.manifest"); !bytes.Contains(manifest, []byte(`"name": "my-plugin"`)) {
				t.Errorf("manifest %s", manifest)
			}
			if bytes.Contains(b, []byte(filepath.Dir(dir))) || bytes.Contains(b, []byte(os.TempDir()+"/ganglion-plugin")) {
				t.Error("the module holds a path of this machine")
			}
			again, err := Build(context.Background(), dir)
			if err != nil || !bytes.Equal(again, b) {
				t.Errorf("built again: %d bytes, %v, the first time %d", len(again), err, len(b))
			}
			t.Logf("%d bytes", len(b))
		})
	}
	if err := New(t.TempDir(), "cobol", "x"); err == nil {
		t.Error("an unknown language is taken")
	}
}

func TestBuildSaysWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	if _, err := Build(context.Background(), dir); err == nil || !strings.Contains(err.Error(), "holds none of") {
		t.Errorf("an empty folder: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "plugin.c"), []byte("int x = ;"), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Build(context.Background(), dir)
	if errors.Is(err, ErrNoToolchain) && !wasmtest.Required() {
		t.Skip(err)
	}
	if err == nil || !strings.Contains(err.Error(), "plugin.c:1:9") {
		t.Errorf("the compiler's message is lost: %v", err)
	}
}
