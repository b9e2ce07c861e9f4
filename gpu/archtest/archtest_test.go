package archtest

import (
	"math"
	"os"
	"path/filepath"
	"testing"
)

// The archives hold what their manifests list: so many models with finite logits.
func TestSetsAreWhole(t *testing.T) {
	if s := Golden(t); os.Getenv("GANGLION_ARCH_DIR") == "" {
		whole(t, s, 116)
	}
	whole(t, Variants(t), 25)
}

func whole(t *testing.T, s *Set, models int) {
	t.Helper()
	if len(s.Entries) != models {
		t.Errorf("%d entries, want %d", len(s.Entries), models)
	}
	for _, e := range s.Entries {
		if st, err := os.Stat(filepath.Join(s.Dir, e.File)); err != nil || st.Size() < 1000 {
			t.Errorf("%s: model file %v, error %v", e.Name, st, err)
		}
		if !(e.MaxExact > 0 && e.MaxExact <= e.MaxFast) {
			t.Errorf("%s: bounds %v and %v", e.Name, e.MaxExact, e.MaxFast)
		}
		for i, v := range s.Want(t, e) {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				t.Errorf("%s: logit %d is %v", e.Name, i, v)
				break
			}
		}
	}
}

func TestUnpackRefusesACutArchive(t *testing.T) {
	if err := unpack(t.TempDir(), archive[:len(archive)/2]); err == nil {
		t.Error("half an archive was unpacked without an error")
	}
}
