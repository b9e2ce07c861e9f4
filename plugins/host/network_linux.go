package host

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// auditArch is the number by which the kernel tells filters of the architecture whose
// system calls a process makes (linux/audit.h).
var auditArch = map[string]uint32{
	"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64, "arm": unix.AUDIT_ARCH_ARM, "riscv64": unix.AUDIT_ARCH_RISCV64,
}

// closeNetwork takes the network from this process for good, all threads of it: what would
// make a socket fails with EPERM (seccomp(2)). It tells whether the kernel did so.
func closeNetwork() bool {
	arch, ok := auditArch[runtime.GOARCH]
	if !ok {
		return false
	}
	const load, equal, above, answer = unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K, unix.BPF_RET | unix.BPF_K
	const number, architecture = 0, 4                        // offsets in struct seccomp_data
	const foreign = 1 << 30                                  // from there on numbers are those of another ABI (x32)
	const allow, refuse = 0x7fff0000, 0x00050000 | uint32(1) // SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO with EPERM
	program := []unix.SockFilter{
		{Code: load, K: architecture},
		{Code: equal, K: arch, Jf: 6},
		{Code: load, K: number},
		{Code: above, K: foreign, Jt: 4},
		{Code: equal, K: unix.SYS_SOCKET, Jt: 3},
		{Code: equal, K: unix.SYS_SOCKETPAIR, Jt: 2},
		{Code: equal, K: unix.SYS_IO_URING_SETUP, Jt: 1},
		{Code: answer, K: allow},
		{Code: answer, K: refuse},
	}
	if unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != nil {
		return false
	}
	p := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	const setFilter, allThreads = 1, 1 // SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC
	r, _, errno := unix.Syscall(unix.SYS_SECCOMP, setFilter, allThreads, uintptr(unsafe.Pointer(&p)))
	runtime.KeepAlive(program)
	return errno == 0 && r == 0
}
