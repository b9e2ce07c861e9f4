package tensor

import (
	"math"
	"strings"
	"testing"
)

// Codes and Dequantize tell the same values, and what Codes splits is within the bounds
// that exact mode counts on (gpu/DESIGN.md, rule 2).
func TestCodes(t *testing.T) {
	for _, typ := range Types() {
		g := typ.Group()
		if g == 0 {
			continue
		}
		t.Run(typ.String(), func(t *testing.T) {
			raw, want := readGolden(t, typ)
			codes := make([]int8, len(want))
			scales, mins := make([]float32, len(want)/g), make([]float32, len(want)/g)
			if err := Codes(typ, codes, scales, mins, raw); err != nil {
				t.Fatal(err)
			}
			got := make([]float32, len(want))
			for i, q := range codes {
				product := float64(scales[i/g]) * float64(q)
				if product != float64(float32(product)) {
					t.Fatalf("value %d: %v·%d is not exact", i, scales[i/g], q)
				}
				got[i] = float32(product)
				if typ.HasMin() {
					got[i] += mins[i/g]
				}
			}
			if i := firstDifference(got, want); i >= 0 {
				t.Errorf("value %d: got %v, want %v", i, got[i], want[i])
			}
		})
	}
}

func TestCodesRefuses(t *testing.T) {
	cases := []struct {
		name                      string
		typ                       Type
		codes, scales, mins, data int
		want                      string
	}{
		{"fits", Q4_K, 256, 8, 8, 144, ""},
		{"without minima", Q6_K, 256, 16, 0, 210, ""},
		{"minima missing", Q4_K, 256, 8, 0, 144, "minima"},
		{"scales missing", Q6_K, 256, 8, 0, 210, "scales"},
		{"truncated", Q8_0, 32, 1, 0, 33, "bytes"},
		{"part of a block", Q8_0, 31, 1, 0, 34, "multiple"},
		{"no codes", F16, 32, 1, 0, 64, "no codes"},
		{"unknown", 99, 32, 1, 0, 64, "no codes"},
	}
	for _, c := range cases {
		err := Codes(c.typ, make([]int8, c.codes), make([]float32, c.scales), make([]float32, c.mins), make([]byte, c.data))
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got error %v, want %q", c.name, err, c.want)
		}
	}
}

// The bounds of every type over all bytes a block can hold, as far as random ones find
// them: codes of 8 bits, and scales that are multiples of 2⁻²⁷ except MXFP4's.
func TestCodeBounds(t *testing.T) {
	for _, typ := range Types() {
		g := typ.Group()
		if g == 0 {
			continue
		}
		n := typ.BlockSize()
		codes, scales, mins := make([]int8, n), make([]float32, n/g), make([]float32, n/g)
		block := make([]byte, typ.BlockBytes())
		seed := uint32(typ)
		for range 2000 {
			for i := range block {
				seed = seed*1664525 + 1013904223
				block[i] = byte(seed >> 24)
			}
			if err := Codes(typ, codes, scales, mins, block); err != nil {
				t.Fatal(err)
			}
			for i := range scales {
				for _, s := range []float32{scales[i], mins[i]} {
					k := float64(s) * (1 << 27)
					if typ != MXFP4 && k == k && !math.IsInf(k, 0) && k != math.Trunc(k) {
						t.Fatalf("%v: scale %v is no multiple of 2⁻²⁷", typ, s)
					}
				}
			}
		}
	}
}
