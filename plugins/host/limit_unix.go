//go:build linux || darwin || freebsd

package host

import (
	"runtime"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// limitChild bounds what compiling can take. On Linux the memory is what the process
// writes to (RLIMIT_DATA counts private writable mappings): Go reserves more address
// space than 1 GiB before main begins, and RLIMIT_AS counts that.
func limitChild(seconds, bytes uint64) error {
	debug.SetMemoryLimit(int64(bytes) / 4 * 3)
	_ = unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{})
	if err := unix.Setrlimit(unix.RLIMIT_CPU, &unix.Rlimit{Cur: seconds, Max: seconds}); err != nil {
		return err
	}
	if runtime.GOOS != "linux" {
		return nil
	}
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: bytes, Max: bytes})
}
