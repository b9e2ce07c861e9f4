package js

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ganglion/plugins/wasm"
)

func TestModule(t *testing.T) {
	script, err := os.ReadFile("example/top-a.js")
	if err != nil {
		t.Fatal(err)
	}
	b, err := Module(script)
	if err != nil {
		t.Fatal(err)
	}
	m, err := wasm.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := m.Custom("ganglion.asset:main.js"); !bytes.Equal(got, script) {
		t.Error("the script is not in the module")
	}
	manifest, _ := m.Custom("ganglion.manifest")
	for _, want := range []string{`"name":"top-a"`, `"memory_pages":128`, `"fuel":{`} {
		if !bytes.Contains(manifest, []byte(want)) {
			t.Errorf("the manifest lacks %s: %s", want, manifest)
		}
	}
	for _, imp := range m.Imports {
		if imp.Module != "ganglion" {
			t.Errorf("the guest imports %s.%s", imp.Module, imp.Name)
		}
	}
}

func TestNoModule(t *testing.T) {
	for script, want := range map[string]error{
		"":                                       ErrNoManifest,
		"let x = 1;":                             ErrNoManifest,
		"/* ganglion {":                          ErrNoManifest,
		"/* {} */":                               ErrNoManifest,
		"/* ganglion {]} */":                     nil,
		`/* ganglion {"name": "x"} */`:           nil,
		"/* ganglion null */":                    nil,
		strings.Repeat(" ", maxScript+1):         nil,
		`/* ganglion {"hooks":[],"limits":3} */`: nil,
	} {
		_, err := Module([]byte(script))
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%.40q: %v, want %v", script, err, want)
		}
	}
}

func TestNew(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mine")
	path, err := New(dir, "calm")
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Module(script)
	if err != nil {
		t.Fatal(err)
	}
	m, err := wasm.Parse(b)
	if err != nil {
		t.Fatal(err)
	}
	if manifest, _ := m.Custom("ganglion.manifest"); !bytes.Contains(manifest, []byte(`"name":"calm"`)) {
		t.Errorf("manifest %s", manifest)
	}
	if _, err := New(dir, "calm"); !errors.Is(err, os.ErrExist) {
		t.Errorf("a plugin is begun over another: %v", err)
	}
}
