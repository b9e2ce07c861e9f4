package ops

import (
	"math"
	"testing"
)

// TestRoPEFrequencies compares tables with values worked out by hand from the papers'
// formulas.
func TestRoPEFrequencies(t *testing.T) {
	tests := []struct {
		name  string
		table RoPETable
		want  []float64
	}{
		{"plain", RoPETable{NRot: 8, Base: 10000, Scale: 1}, []float64{1, 0.1, 0.01, 0.001}},
		{"linear", RoPETable{NRot: 4, Base: 10000, Scale: 0.25}, []float64{0.25, 0.0025}},
		{"factors", RoPETable{NRot: 4, Base: 10000, Scale: 1, Factors: []float32{2, 8}}, []float64{0.5, 0.00125}},
		{"factors/not rotated", RoPETable{NRot: 4, Base: 10000, Scale: 1, Factors: []float32{1, 1e30}}, []float64{1, 0}},
		{"factors/linear", RoPETable{NRot: 4, Base: 10000, Scale: 0.5, Factors: []float32{2, 8}}, []float64{0.25, 0.000625}},
		{"period", RoPETable{NRot: 8, Base: 10000, Scale: 1, Period: 2}, []float64{1, 0.01, 1, 0.01}},
		// Pairs turn 32 times and once within 64 positions at 8·ln(64/(64π))/(2·ln 10⁴)
		// = −0.497 and 8·ln(64/2π)/(2·ln 10⁴) = 1.008: the ramp goes from pair 0 to 2.
		{"yarn", RoPETable{NRot: 8, Base: 10000, Scale: 0.25, YaRN: true, OriginalContext: 64, BetaFast: 32, BetaSlow: 1},
			[]float64{1, 0.1 * (0.5 + 0.5*0.25), 0.0025, 0.00025}},
		// With 10⁶ positions the borders are 8·ln(10⁶/64π)/18.42 = 3.70 and 5.20: every
		// pair is kept but those from 3 to min(6, 7).
		{"yarn/long", RoPETable{NRot: 8, Base: 10000, Scale: 0.25, YaRN: true, OriginalContext: 1e6, BetaFast: 32, BetaSlow: 1},
			[]float64{1, 0.1, 0.01, 0.001}},
		// A ramp of no width turns into a step at its place.
		{"yarn/step", RoPETable{NRot: 8, Base: 10000, Scale: 0.5, YaRN: true, OriginalContext: 6, BetaFast: 1, BetaSlow: 1},
			[]float64{1, 0.05, 0.005, 0.0005}},
	}
	for _, tt := range tests {
		got := tt.table.frequencies()
		for i, want := range tt.want {
			if math.Abs(got[i]-want) > 1e-12*want+1e-25 {
				t.Errorf("%s: pair %d turns by %v per position, want %v", tt.name, i, got[i], want)
			}
		}
	}
}

func TestRoPEAngles(t *testing.T) {
	table := RoPETable{NRot: 4, Base: 10000, Scale: 1, Magnitude: 2}
	cos, sin := table.Angles(5, 3)
	if len(cos) != 6 || len(sin) != 6 {
		t.Fatalf("got %d and %d values, want [3][2]", len(cos), len(sin))
	}
	for p := range 3 {
		for i, freq := range []float64{1, 0.01} {
			angle := float64(5+p) * freq
			if got, want := cos[p*2+i], float32(2*math.Cos(angle)); got != want {
				t.Errorf("cos at position %d, pair %d is %v, want %v", 5+p, i, got, want)
			}
			if got, want := sin[p*2+i], float32(2*math.Sin(angle)); got != want {
				t.Errorf("sin at position %d, pair %d is %v, want %v", 5+p, i, got, want)
			}
		}
	}
	// A part of the table is the table's part.
	all, _ := table.Angles(0, 8)
	for i, c := range cos {
		if all[10+i] != c {
			t.Errorf("element %d differs when the table starts at 0: %v and %v", i, all[10+i], c)
		}
	}
}

func TestALiBiSlopes(t *testing.T) {
	tests := []struct {
		heads   int
		largest float32
		want    []float64
	}{
		{8, 8, []float64{1. / 2, 1. / 4, 1. / 8, 1. / 16, 1. / 32, 1. / 64, 1. / 128, 1. / 256}},
		{4, 8, []float64{1. / 4, 1. / 16, 1. / 64, 1. / 256}},
		// The two beyond four are the first and third of the slopes of eight heads.
		{6, 8, []float64{1. / 4, 1. / 16, 1. / 64, 1. / 256, 1. / 2, 1. / 8}},
		{1, 8, []float64{1. / 256}},
		{3, 0, nil},
	}
	for _, tt := range tests {
		got := ALiBiSlopes(tt.heads, tt.largest)
		if len(got) != len(tt.want) {
			t.Fatalf("%d heads: got %v, want %v", tt.heads, got, tt.want)
		}
		for h, want := range tt.want {
			if float64(got[h]) != want {
				t.Errorf("%d heads: slope %d is %v, want %v", tt.heads, h, got[h], want)
			}
		}
	}
}

func TestPosScale(t *testing.T) {
	tests := []struct {
		op   PosScale
		pos  int
		want float64
	}{
		{PosScale{Floor: 8192, Scale: 0.1}, 0, 1},
		{PosScale{Floor: 8192, Scale: 0.1}, 8191, 1},
		{PosScale{Floor: 8192, Scale: 0.1}, 8192, 1 + 0.1*math.Ln2},
		{PosScale{Floor: 8192, Offset: 1, Scale: 0.1}, 8191, 1 + 0.1*math.Ln2},
		{PosScale{Floor: 10, Scale: 1}, 35, 1 + math.Log(4)},
	}
	for _, tt := range tests {
		if got := tt.op.At(tt.pos); math.Abs(float64(got)-tt.want) > 1e-7 {
			t.Errorf("%+v at %d is %v, want %v", tt.op, tt.pos, got, tt.want)
		}
	}
}
