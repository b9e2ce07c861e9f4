package compute

import (
	"time"

	"golang.org/x/sys/unix"
)

// processTime is the processor time of all threads so far.
func processTime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &now); err != nil {
		return 0
	}
	return time.Duration(now.Nano())
}
