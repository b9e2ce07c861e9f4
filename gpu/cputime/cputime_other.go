//go:build !unix

// Package cputime tells the processor time that this process has used, or the time since its
// start where the system does not tell more.
package cputime

import "time"

var started = time.Now()

// Used is the time since the start.
func Used() time.Duration { return time.Since(started) }
