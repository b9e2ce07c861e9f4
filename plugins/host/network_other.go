//go:build !linux

package host

// closeNetwork takes nothing: other systems have no such call for a process that is not
// privileged.
func closeNetwork() bool { return false }
