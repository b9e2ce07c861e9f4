package engine

import (
	"bytes"
	"os"
	"strconv"
)

// AvailableMemory is what the system says can be had without swapping, in bytes;
// 0 where it does not say (only Linux does, through /proc/meminfo).
func AvailableMemory() int64 {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	return memAvailable(text)
}

func memAvailable(meminfo []byte) int64 {
	for line := range bytes.Lines(meminfo) {
		f := bytes.Fields(line)
		if len(f) < 2 || string(f[0]) != "MemAvailable:" {
			continue
		}
		kib, err := strconv.ParseInt(string(f[1]), 10, 64)
		if err != nil || kib < 0 || kib > 1<<50 {
			return 0
		}
		return kib << 10
	}
	return 0
}
