package builtin

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ganglion/plugins/sdk"
	"ganglion/plugins/wasm/wasmtest"
)

var update = flag.Bool("update", false, "write the modules built from src to wasm")

// compilers are those of Debian 12: others make other bytes of the same source.
var compilers = map[string]string{
	"clang": "clang version 14.0.6",
}

// TestModulesAreBuiltFromSource: each file in wasm is what its source compiles to.
func TestModulesAreBuiltFromSource(t *testing.T) {
	for name, version := range compilers {
		if out, err := exec.Command(name, "--version").Output(); err != nil || !strings.Contains(string(out), version) {
			if wasmtest.Required() {
				t.Fatalf("GANGLION_REQUIRE asks for %s, found %q, %v", version, out, err)
			}
			t.Skipf("no %s here", version)
		}
	}
	sources, err := filepath.Glob("src/*/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range sources {
		name := filepath.Base(filepath.Dir(s))
		names = append(names, name)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := sdk.Build(context.Background(), filepath.Dir(s))
			if errors.Is(err, sdk.ErrNoToolchain) && !wasmtest.Required() {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := os.WriteFile("wasm/"+name+".wasm", got, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if want, _ := Module(name); !bytes.Equal(got, want) {
				t.Errorf("wasm/%s.wasm is not what src/%s compiles to: go test ./plugins/builtin -run ModulesAreBuilt -update", name, name)
			}
		})
	}
	if !*update && !slices.Equal(names, Names()) {
		t.Errorf("wasm holds %v, src %v", Names(), names)
	}
}
