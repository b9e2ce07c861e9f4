package wasm

import (
	"math"
	"testing"
)

func TestNumbers(t *testing.T) {
	for _, v := range []uint64{0, 1, 127, 128, 16383, 16384, math.MaxUint32} {
		b := AppendUint(nil, v)
		r := reader{b: b, end: len(b)}
		if got := r.u32(); r.err != nil || uint64(got) != v || r.left() > 0 {
			t.Errorf("%d: %d, %v", v, got, r.err)
		}
	}
	for _, bits := range []int{32, 33, 64} {
		for _, v := range []int64{0, 1, -1, 63, 64, -64, -65, 1<<(bits-1) - 1, -1 << (bits - 1)} {
			b := AppendInt(nil, v)
			r := reader{b: b, end: len(b)}
			if got := r.signed(bits); r.err != nil || got != v || r.left() > 0 {
				t.Errorf("%d of %d bits: %d, %v", v, bits, got, r.err)
			}
		}
	}
	for _, tt := range []struct {
		b    string
		bits int // 0: unsigned
		ok   bool
		want int64
	}{
		{"\x80\x80\x80\x80\x00", 0, true, 0}, // padded to five bytes
		{"\x80\x80\x80\x80\x80\x00", 0, false, 0},
		{"\xff\xff\xff\xff\x0f", 0, true, math.MaxUint32},
		{"\xff\xff\xff\xff\x1f", 0, false, 0},
		{"\x80", 0, false, 0},
		{"", 0, false, 0},
		{"\xff\xff\xff\xff\x7f", 32, true, -1},
		{"\xff\xff\xff\xff\x0f", 32, false, 0}, // the sign is not repeated
		{"\x80\x80\x80\x80\x78", 32, true, math.MinInt32},
		{"\x80\x80\x80\x80\x08", 32, false, 0},
		{"\xff\xff\xff\xff\x07", 32, true, math.MaxInt32},
		{"\x80\x80\x80\x80\x70", 33, true, -1 << 32},
		{"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f", 64, true, math.MinInt64},
		{"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", 64, false, 0},
		{"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00", 64, false, 0},
	} {
		r := reader{b: []byte(tt.b), end: len(tt.b)}
		var got int64
		if tt.bits == 0 {
			got = int64(r.u32())
		} else {
			got = r.signed(tt.bits)
		}
		if (r.err == nil) != tt.ok || tt.ok && got != tt.want {
			t.Errorf("% x of %d bits: %d, %v; want %d, %v", tt.b, tt.bits, got, r.err, tt.want, tt.ok)
		}
	}
}
