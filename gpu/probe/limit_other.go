//go:build !linux

package probe

// limitChild does nothing: only Linux has a limit that counts what a process writes to.
func limitChild() {}
