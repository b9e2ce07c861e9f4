package opstest

import (
	"strings"
	"testing"

	"ganglion/gpu/ops"
)

// The parts of the suite are all of it, each check in one of them, and checks that share
// kernels are together.
func TestPartsAreTheSuite(t *testing.T) {
	const parts = 5
	seen, home := map[string]int{}, map[string]int{}
	for i := range parts {
		c := config{part: i, parts: parts}
		for _, k := range c.share(suite(c)) {
			seen[k.name]++
			if k.kernels == "" {
				continue
			}
			if at, known := home[k.kernels]; known && at != i {
				t.Errorf("%s: in parts %d and %d", k.kernels, at, i)
			}
			home[k.kernels] = i
		}
	}
	together := 0
	for _, k := range suite(config{}) {
		if seen[k.name] != 1 {
			t.Errorf("%s is in %d parts", k.name, seen[k.name])
		}
		if k.kernels != "" {
			together++
		}
	}
	if together < 2*len(home) || len(home) < parts {
		t.Errorf("%d checks share %d sets of kernels: nothing was tested", together, len(home))
	}
}

// With types of cache in turn each case has one of them, and each type has cases with and
// without windows.
func TestCachesInTurn(t *testing.T) {
	type kind struct {
		kv       ops.KVType
		windowed bool
	}
	seen := map[kind]int{}
	for _, k := range inTurn(attentionCases()) {
		if len(k.kv) != 1 {
			t.Errorf("%s has caches of %v", k.name, k.kv)
		}
		seen[kind{k.kv[0], !strings.Contains(k.name, "window0of0")}]++
	}
	if len(seen) != 6 {
		t.Errorf("cases by type and window: %v", seen)
	}
}
