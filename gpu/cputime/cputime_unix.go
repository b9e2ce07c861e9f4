//go:build unix

// Package cputime tells the processor time that this process has used: what tests and
// benchmarks bound work by on a machine that others use too. It imports nothing of ours.
package cputime

import (
	"syscall"
	"time"
)

// Used is the time of all threads in the program and in the system for it.
func Used() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
