//go:build !(linux || darwin || freebsd)

package host

import "runtime/debug"

// limitChild asks Go's heap to stay small. The parent's clock and the limits on a
// module's structure bound the rest.
func limitChild(_, bytes uint64) error {
	debug.SetMemoryLimit(int64(bytes) / 4 * 3)
	return nil
}
