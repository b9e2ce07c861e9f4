//go:build linux || darwin || freebsd

package film

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// limitChild bounds what a child can take. On Linux the memory is what the process
// writes to (RLIMIT_DATA counts private writable mappings).
func limitChild(seconds, bytes uint64) error {
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	if err := unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: seconds, Max: seconds}); err != nil {
		return err
	}
	if runtime.GOOS != "linux" {
		return nil
	}
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: bytes, Max: bytes})
}
