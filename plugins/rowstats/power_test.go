package rowstats

import (
	"math"
	"testing"
)

func TestPowerAndLn(t *testing.T) {
	exp := func(x float32) float32 { return Power(float32(-x * Log2E)) }
	for x := 0.0; x < 44; x += 0.00317 {
		x := float64(float32(x))
		if got, want := float64(exp(float32(x))), math.Exp(-x); math.Abs(got-want) > 3e-7*want*max(1, x) {
			t.Fatalf("e^-%g: %g, want %g", x, got, want)
		}
	}
	if exp(float32(math.NaN())) != 0 || exp(float32(math.Inf(1))) != 0 || exp(0) != 1 || Power(1) != 0 {
		t.Error("the ends of Power")
	}
	if w := Power(math.Nextafter32(Farthest, 0)); w < 0x1p-100 || Power(Farthest) != 0 {
		t.Errorf("the far end of Power: %g and %g", w, Power(Farthest))
	}
	for x := 1e-9; x < 1e12; x *= 1.037 {
		if got, want := ln(x), math.Log(x); math.Abs(got-want) > 4e-15*max(1, math.Abs(want)) {
			t.Fatalf("ln %g: %g, want %g", x, got, want)
		}
	}
}

// TestLanes: a lane keeps what float32 additions round away, and a sum beyond float32 is
// infinite, not NaN.
func TestLanes(t *testing.T) {
	var l Lanes
	for range 1000 {
		l.Add(&[LaneCount]float32{1 << 20, 1.0 / 3})
		l.Add(&[LaneCount]float32{1.0 / 3, 1 << 20})
	}
	if got, want := l.Sum(), 2000*(1<<20+float64(float32(1.0/3))); math.Abs(got-want) > 1e-11*want {
		t.Errorf("%v, want %v", got, want)
	}
	l.Add(&[LaneCount]float32{math.MaxFloat32})
	l.Add(&[LaneCount]float32{math.MaxFloat32})
	if got := l.Sum(); !math.IsInf(got, 1) {
		t.Errorf("%v, want +Inf", got)
	}
}
