package tensor

import (
	"math"
	"testing"
)

// widen16 is the definition of binary16 in float64, where everything is exact.
func widen16(h uint16) float64 {
	sign, exp, man := 1.0, int(h>>10&31), float64(h&0x3ff)
	if h>>15 != 0 {
		sign = -1
	}
	switch exp {
	case 0:
		return sign * math.Ldexp(man, -24)
	case 31:
		if man != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1024+man, exp-25)
}

func TestF16AllValues(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		got, want := F16ToF32(h), widen16(h)
		if want != want {
			if got == got {
				t.Fatalf("%#04x: got %v, want NaN", h, got)
			}
			if back := F32ToF16(got); back&0x7c00 != 0x7c00 || back&0x3ff == 0 {
				t.Fatalf("%#04x: NaN became %#04x", h, back)
			}
			continue
		}
		if float64(got) != want || math.Signbit(float64(got)) != (h>>15 != 0) {
			t.Fatalf("%#04x: got %v, want %v", h, got, want)
		}
		if back := F32ToF16(got); back != h {
			t.Fatalf("%#04x: back is %#04x", h, back)
		}
	}
}

// Between every two neighbours the midpoint goes to the even one and its float32
// neighbours to the nearer one.
func TestF32ToF16Ties(t *testing.T) {
	for i := range 0x7c00 {
		h := uint16(i)
		next := widen16(h + 1)
		if h+1 == 0x7c00 {
			next = 65536 // what the next number would be
		}
		mid := float32((widen16(h) + next) / 2)
		even := h + h&1
		below := math.Nextafter32(mid, 0)
		above := math.Nextafter32(mid, float32(math.Inf(1)))
		for _, c := range []struct {
			f    float32
			want uint16
		}{{mid, even}, {below, h}, {above, h + 1}} {
			if got := F32ToF16(c.f); got != c.want {
				t.Fatalf("%v: got %#04x, want %#04x", c.f, got, c.want)
			}
			if got := F32ToF16(-c.f); got != c.want|0x8000 {
				t.Fatalf("%v: got %#04x, want %#04x", -c.f, got, c.want|0x8000)
			}
		}
	}
}

func TestF32ToF16Limits(t *testing.T) {
	for _, c := range []struct {
		f    float32
		want uint16
	}{
		{math.MaxFloat32, 0x7c00},
		{float32(math.Inf(1)), 0x7c00},
		{float32(math.Inf(-1)), 0xfc00},
		{65519.996, 0x7bff},
		{65520, 0x7c00},
		{math.SmallestNonzeroFloat32, 0},
		{0x1p-25, 0},
		{0x1.000002p-25, 1},
		{float32(math.Copysign(0, -1)), 0x8000},
	} {
		if got := F32ToF16(c.f); got != c.want {
			t.Errorf("%v: got %#04x, want %#04x", c.f, got, c.want)
		}
	}
}

func TestBF16(t *testing.T) {
	for i := range 1 << 16 {
		h := uint16(i)
		f := BF16ToF32(h)
		back := F32ToBF16(f)
		if f != f {
			if back&0x7fff <= 0x7f80 {
				t.Fatalf("%#04x: NaN became %#04x", h, back)
			}
			continue
		}
		if back != h {
			t.Fatalf("%#04x: back is %#04x", h, back)
		}
	}
	for _, c := range []struct {
		bits uint32
		want uint16
	}{
		{0x3f808000, 0x3f80}, // tie, even below
		{0x3f818000, 0x3f82}, // tie, even above
		{0x3f808001, 0x3f81},
		{0x3f807fff, 0x3f80},
		{0x7f7fffff, 0x7f80}, // the largest float32 rounds to infinity
		{0x7f800001, 0x7fc0}, // signalling NaN whose payload would be cut off
	} {
		if got := F32ToBF16(math.Float32frombits(c.bits)); got != c.want {
			t.Errorf("%#08x: got %#04x, want %#04x", c.bits, got, c.want)
		}
	}
}
