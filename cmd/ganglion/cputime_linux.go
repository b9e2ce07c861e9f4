package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// processTime is the processor time of all threads so far, 0 where it is not known. On a
// machine that does other work it says more of a software renderer than the clock.
func processTime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &now); err != nil {
		return 0
	}
	return time.Duration(now.Nano())
}
