package probe

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// limitChild bounds what a driver that has gone mad can take: memory that it writes to
// (RLIMIT_DATA counts private writable mappings, setrlimit(2)), and no core file.
func limitChild() {
	const most = 4 << 30 // bytes; a software renderer with all kernels compiled needs a tenth
	_ = syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: most, Max: most})
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
}

// processorTime is what a process has had of the processors so far (proc_pid_stat(5),
// fields 14 and 15, in hundredths of a second); 0 when that cannot be told.
func processorTime(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, ok := bytes.Cut(text, []byte(") ")) // the name before may hold anything but this
	fields := bytes.Fields(rest)
	if !ok || len(fields) < 13 {
		return 0
	}
	user, err1 := strconv.ParseInt(string(fields[11]), 10, 64)
	system, err2 := strconv.ParseInt(string(fields[12]), 10, 64)
	if err1 != nil || err2 != nil {
		return 0
	}
	return time.Duration(user+system) * 10 * time.Millisecond
}
