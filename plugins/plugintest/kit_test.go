package plugintest

import (
	"os"
	"path/filepath"
	"testing"

	"ganglion/plugins/builtin"
)

// others are the plugins that come with Ganglion.
func others(t testing.TB) (files [][]byte) {
	for _, n := range builtin.Names() {
		b, ok := builtin.Module(n)
		if !ok {
			t.Fatal(n)
		}
		files = append(files, b)
	}
	return files
}

// The plugins that come with Ganglion keep the contract.
func TestBuiltins(t *testing.T) {
	o := Options{Others: others(t)}
	if testing.Short() || raced {
		o.Tokens, o.Vocabularies = 2000, []int{32000}
	}
	for _, n := range builtin.Names() {
		t.Run(n, func(t *testing.T) {
			b, _ := builtin.Module(n)
			path := filepath.Join(t.TempDir(), n+".wasm")
			if err := os.WriteFile(path, b, 0o644); err != nil {
				t.Fatal(err)
			}
			r := Run(t, path, o)
			t.Logf("%s: %v", n, r.Hooks)
		})
	}
}
