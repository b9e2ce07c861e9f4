//go:build unix

package wasmtest

import (
	"syscall"
	"time"
)

// CPUTime is the processor time that this process has used: what a limit on work is
// measured by on a machine that others use too.
func CPUTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
