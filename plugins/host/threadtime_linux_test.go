package host

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// threadTime is what this thread has used of a processor: on a busy machine clocks say
// little.
func threadTime() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_THREAD, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peakMemory is the most memory that a process had, in bytes.
func peakMemory(s *os.ProcessState) int64 {
	if u, ok := s.SysUsage().(*syscall.Rusage); ok {
		return u.Maxrss << 10
	}
	return 0
}

// peakHere is the most memory that this process, or a child of it that ended, had.
// (proc_pid_status(5). What getrusage(2) says of a process begins with what the one had that
// began it.)
func peakHere() (peak int64) {
	status, _ := os.ReadFile("/proc/self/status")
	if _, after, ok := strings.Cut(string(status), "VmHWM:"); ok {
		_, _ = fmt.Sscan(after, &peak)
	}
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_CHILDREN, &u)
	return max(peak, u.Maxrss) << 10
}
