//go:build !linux

package tokenizer

import "time"

// cpuTime returns the time that f takes.
func cpuTime(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}
