package engine

import (
	"testing"
	"testing/fstest"
)

func TestAvailableMemory(t *testing.T) {
	const mem = "MemTotal:  900 kB\nMemAvailable:   500 kB\n"
	for name, tt := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"nothing known": {nil, 0},
		"system":        {map[string]string{"proc/meminfo": mem}, 500 << 10},
		"no limit": {map[string]string{"proc/meminfo": mem, "proc/self/cgroup": "0::/a\n",
			"sys/fs/cgroup/a/memory.max": "max\n", "sys/fs/cgroup/a/memory.current": "1000\n"}, 500 << 10},
		"own group": {map[string]string{"proc/meminfo": mem, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "300000\n", "sys/fs/cgroup/a/b/memory.current": "100000\n"}, 200000},
		"cache is given up": {map[string]string{"proc/meminfo": mem, "proc/self/cgroup": "0::/a\n",
			"sys/fs/cgroup/a/memory.max": "300000\n", "sys/fs/cgroup/a/memory.current": "100000\n",
			"sys/fs/cgroup/a/memory.stat": "anon 5\ninactive_file 60000\n"}, 260000},
		"group above": {map[string]string{"proc/meminfo": mem, "proc/self/cgroup": "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max": "300000\n", "sys/fs/cgroup/a/b/memory.current": "100000\n",
			"sys/fs/cgroup/a/memory.max": "150000\n", "sys/fs/cgroup/a/memory.current": "120000\n"}, 30000},
		"container": {map[string]string{"proc/meminfo": mem, "proc/self/cgroup": "0::/\n",
			"sys/fs/cgroup/memory.max": "300000\n", "sys/fs/cgroup/memory.current": "1000\n"}, 299000},
		"above its limit": {map[string]string{"proc/self/cgroup": "0::/\n",
			"sys/fs/cgroup/memory.max": "3000\n", "sys/fs/cgroup/memory.current": "4000\n"}, 1},
		"version 1": {map[string]string{"proc/meminfo": mem, "proc/self/cgroup": "5:cpu,cpuacct:/x\n3:memory:/x\n",
			"sys/fs/cgroup/memory/x/memory.limit_in_bytes": "200000\n", "sys/fs/cgroup/memory/x/memory.usage_in_bytes": "50000\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n", "sys/fs/cgroup/memory/memory.usage_in_bytes": "7\n"}, 150000},
		"nonsense": {map[string]string{"proc/meminfo": "MemAvailable: x kB", "proc/self/cgroup": "0\n::\n0::/a",
			"sys/fs/cgroup/a/memory.max": "-5", "sys/fs/cgroup/a/memory.current": ""}, 0},
	} {
		fsys := fstest.MapFS{}
		for name, text := range tt.files {
			fsys[name] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := availableMemory(fsys); got != tt.want {
			t.Errorf("%s: %d bytes, want %d", name, got, tt.want)
		}
	}
}
