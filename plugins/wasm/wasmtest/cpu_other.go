//go:build !unix

package wasmtest

import "time"

var began = time.Now()

// CPUTime is the time since the start of the process, where there is no better one.
func CPUTime() time.Duration { return time.Since(began) }
