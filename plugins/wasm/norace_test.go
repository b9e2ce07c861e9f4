//go:build !race

package wasm_test

import "time"

// limit100 is the time in which a file is decided.
const limit100 = 100 * time.Millisecond
