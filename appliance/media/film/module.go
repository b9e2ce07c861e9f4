//go:build ffmpeg && !noffmpeg

package film

import _ "embed"

// module is ffmpeg n5.1.10 as a WebAssembly program, packed with gzip: GPL-3, as the Go
// module codeberg.org/gruf/go-ffmpreg v0.6.22 has it. `./build.sh build` puts it here; before that
// go says "pattern blob/ffmpreg.wasm.gz: no matching files found" of this tag. It stays
// packed in the program's data and costs nothing until a child unpacks it.
//
//go:embed blob/ffmpreg.wasm.gz
var module string

// Licence is the text under which the module comes.
//
//go:embed blob/LICENSE
var Licence string
