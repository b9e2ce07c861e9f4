package sampling

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

var none = float32(math.Inf(-1))

// rows are rows of many shapes, by name.
func rows() map[string][]float32 {
	r := rand.New(rand.NewPCG(1, 2))
	normal := func(n int, mean, std float64) []float32 {
		row := make([]float32, n)
		for i := range row {
			row[i] = float32(mean + std*r.NormFloat64())
		}
		return row
	}
	equal := make([]float32, 3000)
	one := slices.Repeat([]float32{none}, 5000)
	one[4321] = -7
	holes := normal(40000, -2, 3)
	for i := 0; i < len(holes); i += 3 {
		holes[i] = none
	}
	rising := make([]float32, 70000)
	for i := range rising {
		rising[i] = float32(i) / 5000
	}
	return map[string][]float32{
		"normal": normal(50001, -3, 2.5), "far from zero": normal(32000, 4000, 1), "wide": normal(9000, 0, 60),
		"equal": equal, "all but one out": one, "holes": holes, "rising": rising, "one": {3}, "two": {1, 1},
	}
}

// load makes a distribution of a row.
func loadRow(row []float32) *Distribution {
	in := inputOf(row, Needs{View: Row})
	return new(Scratch).load(in)
}

func TestStats(t *testing.T) {
	for name, row := range rows() {
		got := loadRow(row).Stats()
		var want Stats
		var sum, squares, weights, entropy float64
		want.Max = none
		for _, l := range row {
			if l > none {
				want.Max = max(want.Max, l)
				want.Finite++
				sum += float64(l)
			}
		}
		mean := sum / float64(want.Finite)
		for _, l := range row {
			if l > none {
				squares += (float64(l) - mean) * (float64(l) - mean)
				weights += math.Exp(float64(l) - float64(want.Max))
			}
		}
		lse := float64(want.Max) + math.Log(weights)
		for _, l := range row {
			if l > none {
				entropy -= math.Exp(float64(l)-lse) * (float64(l) - lse)
			}
		}
		if got.Max != want.Max || got.Finite != want.Finite {
			t.Errorf("%s: max %g of %d, want %g of %d", name, got.Max, got.Finite, want.Max, want.Finite)
		}
		near := func(what string, got float32, want, scale float64) {
			if d := math.Abs(float64(got) - want); !(d <= 3e-6*scale) {
				t.Errorf("%s: %s %g, want %g: off by %g", name, what, got, want, d)
			}
		}
		std := math.Sqrt(squares / float64(want.Finite))
		near("mean", got.Mean, mean, math.Abs(mean)+std)
		near("std", got.Std, std, std+1e-3)
		near("log-sum-exp", got.LogSumExp, lse, math.Abs(lse)+1)
		near("entropy", got.Entropy, entropy, entropy+1)
	}
}

// TestStatsOfAList: a list and the row that has nothing else tell the same.
func TestStatsOfAList(t *testing.T) {
	row := rows()["normal"]
	d := loadRow(row)
	want := slices.Clone(row)
	words := make([]byte, (len(row)+31)/32*4)
	for i := range row {
		if i%5 == 0 {
			words[i/8] |= 1 << (i % 8)
		} else {
			want[i] = none
		}
	}
	if err := d.Mask(words); err != nil {
		t.Fatal(err)
	}
	got, whole := d.Stats(), loadRow(want).Stats()
	if got.Finite != whole.Finite || got.Max != whole.Max || math.Abs(float64(got.Entropy-whole.Entropy)) > 1e-5 || math.Abs(float64(got.LogSumExp-whole.LogSumExp)) > 1e-5 {
		t.Errorf("list %+v, row %+v", got, whole)
	}
}

func TestTop(t *testing.T) {
	for name, row := range rows() {
		var all []Candidate
		for i, l := range row {
			if l > none {
				all = append(all, Candidate{int32(i), l})
			}
		}
		slices.SortFunc(all, compare)
		for _, n := range []int{1, 7, 256, 4096} {
			d := loadRow(row)
			want := all[:min(n, len(all))]
			if got := d.Top(n); !slices.Equal(got, want) {
				t.Errorf("%s: top %d has %d, differs from the sorted row at %v", name, n, len(got), firstOther(got, want))
			}
			if got := d.Top(n / 2); n > 1 && !slices.Equal(got, want[:min(n/2, len(want))]) {
				t.Errorf("%s: the first half of top %d differs", name, n)
			}
		}
	}
}

func firstOther(a, b []Candidate) any {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return []any{i, a[i], b[i]}
		}
	}
	return "the end"
}

func TestTopSkipsWhatIsNoNumber(t *testing.T) {
	row := []float32{1, float32(math.NaN()), 3, none, 2}
	d := loadRow(row)
	if got := d.Top(9); !slices.Equal(got, []Candidate{{2, 3}, {4, 2}, {0, 1}}) {
		t.Errorf("top: %v", got)
	}
}

func TestShare(t *testing.T) {
	for name, row := range rows() {
		d := loadRow(row)
		for _, n := range []int{1, 40, 256} {
			want := 0.0
			for _, c := range d.Top(n) {
				want += math.Exp(float64(c.Logit) - float64(d.Stats().LogSumExp))
			}
			if got := d.Share(n); math.Abs(got-want) > 3e-6*(1+math.Abs(float64(d.Stats().LogSumExp))) || got != d.Share(n) {
				t.Errorf("%s: the first %d have %g, want %g", name, n, got, want)
			}
		}
	}
	d := loadRow([]float32{1, 1, 1, 1})
	if got := d.Share(2); math.Abs(got-0.5) > 1e-6 {
		t.Errorf("half has %g", got)
	}
	if d.Ban(3); math.Abs(d.Share(2)-2/3.0) > 1e-6 {
		t.Errorf("two of three have %g", d.Share(2))
	}
}
