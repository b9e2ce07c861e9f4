//go:build race

package wasm_test

import "time"

// limit100 is the time in which a file is decided; the race detector makes all of it
// some ten times slower.
const limit100 = 2000 * time.Millisecond
