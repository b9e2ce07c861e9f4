//go:build !linux

package probe

import "time"

// limitChild does nothing: only Linux has a limit that counts what a process writes to.
func limitChild() {}

// processorTime is not told: silence alone counts.
func processorTime(int) time.Duration { return 0 }
