package probe

import "syscall"

// limitChild bounds what a driver that has gone mad can take: memory that it writes to
// (RLIMIT_DATA counts private writable mappings, setrlimit(2)), and no core file.
func limitChild() {
	const most = 4 << 30 // bytes; a software renderer with all kernels compiled needs a tenth
	_ = syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: most, Max: most})
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
}
