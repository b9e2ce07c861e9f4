//go:build !(linux || darwin || freebsd)

package host

// reserve has nothing to give: memory comes from Go's heap.
func reserve(int) []byte { return nil }

// release has nothing to give back.
func release([]byte) {}
