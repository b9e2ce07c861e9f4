package engine

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
)

// AvailableMemory is what can be had without swapping, in bytes: what the system says
// (/proc/meminfo), or what the process's control groups leave when that is less. It is
// 0 where neither says anything; only Linux does.
func AvailableMemory() int64 { return availableMemory(os.DirFS("/")) }

func availableMemory(root fs.FS) int64 {
	var free int64
	if text, err := fs.ReadFile(root, "proc/meminfo"); err == nil {
		free = memAvailable(text)
	}
	if group, ok := cgroupAvailable(root); ok && (free == 0 || group < free) {
		free = max(group, 1) // 0 would mean unknown
	}
	return free
}

// cgroupAvailable is the least that a control group of the process leaves, from its
// own up to the root (kernel documentation, cgroup-v2 and cgroup-v1/memory).
func cgroupAvailable(root fs.FS) (free int64, ok bool) {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(text)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3) // hierarchy:controllers:path
		if len(f) != 3 {
			continue
		}
		base, limit, usage, cache := "sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"
		if f[1] != "" {
			if !slices.Contains(strings.Split(f[1], ","), "memory") {
				continue
			}
			base, limit, usage, cache = "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
		}
		for dir := path.Join("/", f[2]); ; dir = path.Dir(dir) {
			at := path.Join(base, dir)
			most, limited := number(root, path.Join(at, limit))
			used, known := number(root, path.Join(at, usage))
			if limited && known {
				used -= min(used, field(root, path.Join(at, "memory.stat"), cache)) // the kernel gives it up when asked
				if left := max(most-used, 0); !ok || left < free {
					free, ok = left, true
				}
			}
			if dir == "/" {
				break
			}
		}
	}
	return free, ok
}

// number reads a file that holds one number; "max" and numbers beyond any machine mean
// no limit.
func number(root fs.FS, name string) (int64, bool) {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil && n >= 0 && n < 1<<60
}

// field reads a field of a file of names and numbers; 0 when it is missing.
func field(root fs.FS, name, key string) int64 {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == key {
			n, err := strconv.ParseInt(f[1], 10, 64)
			if err == nil && n > 0 {
				return n
			}
		}
	}
	return 0
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
