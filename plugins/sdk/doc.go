// Package sdk begins plugins and builds them from source.
//
// The SDKs themselves are the folders c, rust, go and assemblyscript: a header or library
// of one file, an example that is the same in all of them, and a README each. The package
// carries them inside the binary, so that a plugin can be begun ([New]) and built
// ([Build]) anywhere; the compilers are those of the machine.
//
// The package imports plugins/wasm alone.
package sdk

import "embed"

//go:embed c/ganglion.h c/example rust/ganglion.rs rust/example go/ganglion.go go/example assemblyscript/ganglion.ts assemblyscript/example
var sources embed.FS

// library returns the file of an SDK.
func library(path string) []byte {
	b, err := sources.ReadFile(path)
	if err != nil {
		panic(err) // the file is part of the binary
	}
	return b
}
