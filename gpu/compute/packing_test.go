package compute

import (
	"testing"

	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

// What Packing says is what is allocated.
func TestPackingTellsTheBytesOfAMatrix(t *testing.T) {
	for _, typ := range tensor.Types() {
		const cols, rows, experts = 512, 75, 3
		name, bytes, own, err := Packing(typ, cols, rows, experts)
		if err != nil {
			t.Errorf("%s: %v", typ, err)
			continue
		}
		s := &slabs{limit: 1 << 30}
		m, err := newMatrix(&ops.Weight{Type: typ, Cols: cols, Rows: rows, Experts: experts}, false, s)
		if err != nil {
			t.Fatalf("%s: %v", typ, err)
		}
		var have int64
		for _, w := range m.windows {
			have += w.size
		}
		if have != bytes || name != m.format.Name() || own != (name != "codes") {
			t.Errorf("%s: %d bytes as %s (own %v), %d are allocated as %s", typ, bytes, name, own, have, m.format.Name())
		}
	}
}
