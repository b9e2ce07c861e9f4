//go:build !(linux || darwin || freebsd)

package host

import "runtime/debug"

// limitChild asks Go's heap to stay small. The parent's clock and the limits on a
// module's structure bound the rest.
func limitChild() error {
	debug.SetMemoryLimit(768 << 20)
	return nil
}
