//go:build !linux

package host

import (
	"os"
	"time"
)

var started = time.Now()

func threadTime() time.Duration { return time.Since(started) }

// peakMemory is known on Linux alone.
func peakMemory(*os.ProcessState) int64 { return 0 }

func peakHere() int64 { return 0 }
