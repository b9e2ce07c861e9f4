package engine_test

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"

	"ganglion/gpu/engine"
	"ganglion/gpu/gguf"
)

// resident sums the resident memory of the process in bytes: of one file's mappings,
// and of everything else.
func resident(t testing.TB, path string) (mapped, other int64) {
	t.Helper()
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	inFile := false
	for s := bufio.NewScanner(f); s.Scan(); {
		line := s.Text()
		if f := strings.Fields(line); len(f) > 0 && !strings.HasSuffix(f[0], ":") { // a mapping's first line
			inFile = strings.HasSuffix(line, path)
			continue
		}
		var kib int64
		if n, _ := fmt.Sscanf(line, "Rss: %d kB", &kib); n == 1 {
			if inFile {
				mapped += kib << 10
			} else {
				other += kib << 10
			}
		}
	}
	return mapped, other
}

// A loaded model is in memory once: the packed weights, and not the mapping they
// were packed from. Beside one copy of the weights and the KV cache it takes at most
// 80 MB, the vocabulary and the program included.
func TestResidentMemory(t *testing.T) {
	path := realModel(t)
	_, before := resident(t, path)
	e := open(t, "cpu", engine.Config{Path: path, Threads: 2, Slots: 4})
	slot, _, _ := e.Acquire([]int32{-1, -1}, 0)
	rows := make([]engine.Row, 64)
	for i := range rows {
		rows[i] = engine.Row{Slot: slot, Token: int32(i), Want: i == len(rows)-1}
	}
	if _, err := e.Run(rows); err != nil {
		t.Fatal(err)
	}
	mapped, other := resident(t, path)
	info := e.Info()
	beside := mapped + other - before - info.WeightBytes - info.KVBytes
	t.Logf("%d MB of the mapping, %d MB of anything else, of which %d MB were there before; weights %d MB, KV cache up to %d MB",
		mapped/1e6, other/1e6, before/1e6, info.WeightBytes/1e6, info.KVBytes/1e6)
	if mapped > info.FileBytes/10 {
		t.Errorf("%d MB of the file's mapping are resident after loading", mapped/1e6)
	}
	if beside > 80e6 {
		t.Errorf("%d MB beside the weights and the KV cache, want at most 80", beside/1e6)
	}
}

// The partner of TestResidentMemory: a mapping that was read is seen, and given back.
func TestResidentSeesAMapping(t *testing.T) {
	path := realModel(t)
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var sum byte
	for _, w := range f.Tensors() {
		b, err := f.Data(w)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(b); i += 4096 {
			sum += b[i]
		}
	}
	if mapped, _ := resident(t, path); mapped < f.Size()*9/10 {
		t.Errorf("%d of %d bytes are resident after reading all (%d)", mapped, f.Size(), sum)
	}
	if err := f.Forget(); err != nil {
		t.Fatal(err)
	}
	if mapped, _ := resident(t, path); mapped > f.Size()/10 {
		t.Errorf("%d of %d bytes are resident after Forget", mapped, f.Size())
	}
}
