// Package builtin holds the plugins that come with Ganglion, as compiled modules.
//
// The sources are in src, one folder each; the tests build them again where the
// compilers are installed and compare the bytes, and hold what they do against
// llama.cpp's samplers of the same name (testdata).
package builtin

import (
	"embed"
	"io/fs"
	"strings"
)

//go:embed wasm/*.wasm
var modules embed.FS

// Names returns the names of the plugins in order.
func Names() []string {
	var names []string
	entries, err := fs.ReadDir(modules, "wasm")
	if err != nil {
		panic(err) // the folder is part of the binary
	}
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".wasm"))
	}
	return names
}

// Module returns the file of a plugin. The caller may change the bytes.
func Module(name string) ([]byte, bool) {
	b, err := modules.ReadFile("wasm/" + name + ".wasm")
	return b, err == nil
}
