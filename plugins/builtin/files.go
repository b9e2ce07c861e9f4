package builtin

import "io/fs"

// Files returns the plugins as files, NAME.wasm each.
func Files() fs.FS {
	files, err := fs.Sub(modules, "wasm")
	if err != nil {
		panic(err) // the folder is part of the binary
	}
	return files
}
