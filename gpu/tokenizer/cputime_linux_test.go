package tokenizer

import (
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime returns the processor time that f takes on this thread: other work on
// the machine must not decide whether a test passes.
func cpuTime(f func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := threadTime()
	f()
	return threadTime() - before
}

// threadTime returns the processor time of the calling thread so far.
func threadTime() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now); err != nil {
		panic(err)
	}
	return time.Duration(now.Nano())
}
