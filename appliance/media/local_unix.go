//go:build unix

package media

import "syscall"

// doNotWait opens a pipe at once, with or without a writer.
const doNotWait = syscall.O_NONBLOCK
