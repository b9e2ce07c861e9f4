package plugintest

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ganglion/plugins/sdk"
	"ganglion/plugins/wasm/wasmtest"
)

var update = flag.Bool("update", false, "write the twins built from their sources")

const twins = "testdata/twins"

// toolchain is the compiler that the committed modules were built with: others make other
// bytes of the same source.
const toolchain = "clang version 14.0.6"

// needToolchain skips where there is none, unless GANGLION_REQUIRE asks for it.
func needToolchain(t *testing.T) {
	t.Helper()
	out, err := exec.Command("clang", "--version").Output()
	if err == nil && strings.Contains(string(out), toolchain) {
		return
	}
	if wasmtest.Required() {
		t.Fatalf("GANGLION_REQUIRE asks for %s, found %q, %v", toolchain, out, err)
	}
	t.Skipf("no %s here", toolchain)
}

// Each twin is what its source compiles to.
func TestTwinsAreBuiltFromSource(t *testing.T) {
	needToolchain(t)
	for _, name := range append(Names(), "sound", "rewinds") {
		t.Run(name, func(t *testing.T) {
			got, err := sdk.Build(context.Background(), filepath.Join(twins, name))
			if errors.Is(err, sdk.ErrNoToolchain) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(twins, name+".wasm")
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if want, err := os.ReadFile(path); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s is not what its source compiles to (%v): go test ./plugins/plugintest -run TwinsAreBuilt -update", path, err)
			}
		})
	}
}

// Each check finds its broken twin, and no check before it does.
func TestEachCheckFindsItsTwin(t *testing.T) {
	beside := others(t)
	for at, name := range Names() {
		t.Run(name, func(t *testing.T) {
			r := checkTwin(t, name, Options{Others: beside, Tokens: 2000})
			if r.Passed {
				t.Error("the twin passed")
			}
			for i, c := range r.Checks[:at+1] {
				switch {
				case i < at && !c.Passed && c.Skipped == "":
					t.Errorf("check %s, which is weaker, found it: %s", c.Name, c.Error)
				case i == at && c.Error == "":
					t.Errorf("check %s did not find it: %+v", c.Name, c)
				case i == at:
					t.Log(c.Error)
				}
			}
		})
	}
}

// The plugin that the twins are broken forms of passes all checks.
func TestSoundPlugin(t *testing.T) {
	r := checkTwin(t, "sound", Options{Others: others(t), Tokens: 2000})
	for _, c := range r.Checks {
		if !c.Passed && c.Skipped == "" {
			t.Errorf("%s: %s", c.Name, c.Error)
		}
	}
	if !r.Passed || r.Hooks["logits"].Calls == 0 {
		t.Errorf("%+v", r)
	}
	if b := r.Badge(); b.Color != "brightgreen" {
		t.Errorf("%+v", b)
	}
}

func checkTwin(t *testing.T, name string, o Options) *Report {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(twins, name+".wasm"))
	if err != nil {
		t.Fatal(err)
	}
	if o.Vocabularies == nil {
		o.Vocabularies = []int{32000}
	}
	r, err := Check(t.Context(), file, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
