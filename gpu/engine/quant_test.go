package engine_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"testing"

	"ganglion/gpu/archtest"
	"ganglion/gpu/engine"
	"ganglion/gpu/ops"
)

// quantManifest is testdata/quant/manifest.json.
type quantManifest struct {
	Tokens  []int32
	Entries []struct {
		Type, File, Logits string
		Peer               float64 `json:"peer_nmse_with_its_own_integer_activations"`
	}
}

// Bounds of TestWeightTypes. Exact mode differs from the golden values by the order of
// float32 sums and by the cache's halves. Fast mode rounds activations to 8 bits as
// the peer does and may lose as much and a tenth, for its sums have another order.
const (
	quantExact = 1e-7
	quantFast  = 1.1
)

// quantFile returns the path of one golden file: that of the folder that
// GANGLION_QUANT_DIR names, or the repository's, unpacked. The repository leaves F32,
// F16 and BF16 out for their size; gpu/cpu tests their products bit for bit.
func quantFile(t *testing.T, name string) string {
	t.Helper()
	if dir := os.Getenv("GANGLION_QUANT_DIR"); dir != "" {
		return filepath.Join(dir, name)
	}
	packed, err := os.ReadFile(filepath.Join("testdata/quant", name+".gz"))
	if errors.Is(err, fs.ErrNotExist) && (name[0] == 'F' || name[0] == 'B') {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func quantLogits(t *testing.T, name string) []float32 {
	t.Helper()
	b, err := os.ReadFile(quantFile(t, name))
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float32, len(b)/4)
	for i := range out {
		out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return out
}

// TestWeightTypes runs a model of each weight type against its golden logits.
func TestWeightTypes(t *testing.T) {
	var m quantManifest
	readJSON(t, "testdata/quant/manifest.json", &m)
	run := 0
	for _, entry := range m.Entries {
		path := quantFile(t, entry.File)
		if path == "" {
			continue
		}
		run++
		want := quantLogits(t, entry.Logits)
		for _, tt := range []struct {
			numerics ops.Numerics
			bound    float64
		}{{ops.Exact, quantExact}, {ops.Fast, max(quantExact, quantFast*entry.Peer)}} {
			t.Run(entry.Type+"/"+tt.numerics.String(), func(t *testing.T) {
				e := open(t, "cpu", engine.Config{Path: path, Numerics: tt.numerics, Threads: 2})
				got := allLogits(t, e, m.Tokens, len(m.Tokens))
				d := archtest.NMSE(got, want)
				if len(got) != len(want) || !(d <= tt.bound) {
					t.Fatalf("NMSE %.3g over %d logits, bound %.3g over %d", d, len(got), tt.bound, len(want))
				}
				t.Logf("NMSE %.3g, bound %.3g", d, tt.bound)
			})
		}
	}
	if run < 22 {
		t.Errorf("%d of %d types were run", run, len(m.Entries))
	}
}

// The partner of TestWeightTypes: another type's logits are out of bounds.
func TestWeightTypeBoundsCatchAnotherType(t *testing.T) {
	var m quantManifest
	readJSON(t, "testdata/quant/manifest.json", &m)
	e := open(t, "cpu", engine.Config{Path: quantFile(t, "Q5_0.gguf"), Numerics: ops.Exact, Threads: 2})
	if d := archtest.NMSE(allLogits(t, e, m.Tokens, len(m.Tokens)), quantLogits(t, "Q4_0.logits.f32")); d < 1e-3 {
		t.Errorf("NMSE %.3g against another type's logits, want it above the bounds", d)
	}
}
