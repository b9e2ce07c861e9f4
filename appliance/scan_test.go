package appliance_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"ganglion/gpu/cpu"
	"ganglion/plugins/rowstats"
	"ganglion/plugins/sampling"
)

// scans are the kernels of this machine, by name, as the sampling package sees them.
func scans(t testing.TB) map[string]sampling.Scanner {
	found := map[string]sampling.Scanner{}
	for _, name := range []string{"plain", "avx2", "avx512vnni", "neon", "neondot"} {
		if s, err := cpu.NewScan(cpu.Options{Kernels: name}); err == nil {
			found[name] = s
		}
	}
	if len(found) == 0 {
		t.Skip("a build without cgo has no kernels")
	}
	return found
}

var (
	inf = float32(math.Inf(1))
	nan = float32(math.NaN())
)

// scanRows are random and adversarial rows, by name.
func scanRows(r *rand.Rand) map[string][]float32 {
	normal := func(n int, mean, std float64) []float32 {
		row := make([]float32, n)
		for i := range row {
			row[i] = float32(mean + std*r.NormFloat64())
		}
		return row
	}
	with := func(row []float32, every int, values ...float32) []float32 {
		for i := range row {
			if r.IntN(every) == 0 {
				row[i] = values[r.IntN(len(values))]
			}
		}
		return row
	}
	rows := map[string][]float32{
		"vocabulary":      normal(262144, -3, 2.5),
		"uneven":          normal(151937, -1, 4),
		"wide":            normal(20000, 0, 40),
		"far":             normal(5000, 4000, 1),
		"huge":            with(normal(9000, 0, 1), 9, math.MaxFloat32, -math.MaxFloat32, 1e25, -1e25),
		"tiny":            with(make([]float32, 9000), 2, 1e-40, -1e-40, 1e-45),
		"equal":           slices.Repeat([]float32{2.5}, 70001),
		"all out":         slices.Repeat([]float32{-inf}, 5000),
		"all NaN":         slices.Repeat([]float32{nan}, 3000),
		"all Inf":         slices.Repeat([]float32{inf}, 3000),
		"one left":        with(slices.Repeat([]float32{-inf}, 5000), 1<<40, 0),
		"masked":          with(normal(40000, -2, 3), 2, -inf),
		"NaN and Inf":     with(normal(40000, -2, 3), 5, -inf, inf, nan, -nan),
		"a NaN":           normal(4096, 0, 3),
		"an Inf":          normal(4096, 0, 3),
		"zeros":           with(make([]float32, 30000), 2, float32(math.Copysign(0, -1))),
		"few values":      with(slices.Repeat([]float32{1}, 60000), 2, 0, 2, 3, -1),
		"at the far end":  with(slices.Repeat([]float32{-87.7}, 9000), 1000, 0, -88.03, -88.02, -87.4),
		"rising":          normal(33333, 0, 1),
		"largest is last": normal(2049, 0, 1),
	}
	rows["one left"][4097] = -7
	rows["a NaN"][4095] = nan
	rows["an Inf"][0] = inf
	slices.Sort(rows["rising"])
	rows["largest is last"][2048] = 9
	for _, n := range []int{1, 2, 7, 8, 9, 15, 16, 17, 31, 255, 256, 257, 1023, 1024, 1025, 1279, 4097} {
		rows[fmt.Sprintf("%d", n)] = normal(n, 1, 3)
		rows[fmt.Sprintf("%d with others", n)] = with(normal(n, 1, 3), 3, -inf, nan, inf, 0)
	}
	return rows
}

// bits tells whether floats are the same, any NaN being any other.
func bits(a, b float64) bool {
	return math.Float64bits(a) == math.Float64bits(b) || math.IsNaN(a) && math.IsNaN(b)
}

// TestScan: every kernel finds what the Go code finds, to the bit.
func TestScan(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 6))
	rows := scanRows(r)
	for kernels, scan := range scans(t) {
		t.Run(kernels, func(t *testing.T) {
			for name, row := range rows {
				for _, fault := range scanFaults(scan, row) {
					t.Errorf("%s: %s", name, fault)
				}
			}
		})
	}
}

// scanFaults is where a scanner differs from the Go code on a row.
func scanFaults(scan sampling.Scanner, row []float32) (faults []string) {
	fault := func(format string, args ...any) { faults = append(faults, fmt.Sprintf(format, args...)) }
	pivot := float32(-1.25)
	wantPeaks := make([]float32, rowstats.PeaksOf(len(row)))
	peaks := slices.Clone(wantPeaks)
	want := rowstats.ScanMoments(row, pivot, wantPeaks)
	got := rowstats.Moments{Largest: float32(math.Inf(-1))}
	got.Count, got.LargestAt, got.First, got.Second, got.PositiveInf = scan.Moments(row, pivot, peaks)
	if got.LargestAt >= 0 {
		got.Largest = row[got.LargestAt]
	}
	if got.Count != want.Count || got.LargestAt != want.LargestAt || got.PositiveInf != want.PositiveInf ||
		!bits(float64(got.Largest), float64(want.Largest)) || !bits(got.First, want.First) || !bits(got.Second, want.Second) {
		fault("moments %+v, want %+v", got, want)
	}
	if !slices.Equal(peaks, wantPeaks) {
		fault("the peaks differ")
		return faults
	}
	if want.Count > 0 {
		m := rowstats.ScanMass(row, want.Largest)
		if sum, distance := scan.Mass(row, want.Largest); !bits(sum, m.Sum) || !bits(distance, m.Distance) {
			fault("mass %v, %v, want %v", sum, distance, m)
		}
	}
	spare := make([]float32, len(peaks)/2)
	found, wantFound := make([]int32, len(row)), make([]int32, len(row))
	for _, n := range []int{1, 3, 16, 256, 4096} {
		limit, want := scan.Limit(peaks, n, spare), sampling.ScanLimit(peaks, n, spare)
		if limit != want {
			fault("limit of %d is %g, want %g", n, limit, want)
		}
		k := scan.Above(found, row, peaks, limit)
		wantK := sampling.ScanAbove(wantFound, row, peaks, limit)
		if !slices.Equal(found[:k], wantFound[:wantK]) {
			fault("%d above %g, want %d", k, limit, wantK)
		}
	}
	return faults
}

// wrong is a scanner whose results are off by the least.
type wrong struct {
	sampling.Scanner
	moments, mass, limit, above bool
}

func (w wrong) Moments(row []float32, pivot float32, peaks []float32) (count, largestAt int, first, second float64, positiveInf bool) {
	count, largestAt, first, second, positiveInf = w.Scanner.Moments(row, pivot, peaks)
	if w.moments {
		second = math.Nextafter(second, 0)
	}
	return
}

func (w wrong) Mass(row []float32, top float32) (sum, distance float64) {
	sum, distance = w.Scanner.Mass(row, top)
	if w.mass {
		distance = math.Nextafter(distance, 0)
	}
	return
}

func (w wrong) Limit(peaks []float32, n int, spare []float32) float32 {
	limit := w.Scanner.Limit(peaks, n, spare)
	if w.limit {
		return math.Nextafter32(limit, 99)
	}
	return limit
}

func (w wrong) Above(found []int32, row, peaks []float32, limit float32) int {
	n := w.Scanner.Above(found, row, peaks, limit)
	if w.above && n > 1 {
		found[0], found[1] = found[1], found[0]
	}
	return n
}

// TestScanFaults: the comparison sees one bit.
func TestScanFaults(t *testing.T) {
	row := scanRows(rand.New(rand.NewPCG(6, 6)))["masked"]
	for _, scan := range scans(t) {
		for i, w := range []wrong{{}, {moments: true}, {mass: true}, {limit: true}, {above: true}} {
			w.Scanner = scan
			if got := scanFaults(w, row); (len(got) > 0) != (i > 0) {
				t.Errorf("%+v: %q", w, got)
			}
		}
	}
}

// looker is a plugin that looks at statistics and the n best.
type looker struct {
	n     int
	stats sampling.Stats
	top   []sampling.Candidate
	least time.Duration
}

func (l *looker) Needs(int) sampling.Needs                                   { return sampling.Needs{View: sampling.Row} }
func (l *looker) Early(_ *sampling.Distribution, t float64) (float64, error) { return t, nil }
func (l *looker) Choose(*sampling.Distribution, float64) (int32, bool, error) {
	return 0, true, nil
}
func (*looker) Came(int32)              {}
func (*looker) CameForced(int32, int32) {}
func (l *looker) Late(d *sampling.Distribution, t float64) (float64, error) {
	begin := time.Now()
	l.stats, l.top = d.Stats(), d.Top(l.n)
	if e := time.Since(begin); l.least == 0 || e < l.least {
		l.least = e
	}
	return t, nil
}

// look makes a step over a row.
func (l *looker) look(t testing.TB, row []float32, s *sampling.Scratch) {
	chain, err := sampling.New(sampling.Params{Vocab: len(row), TopP: 1, Plugins: l})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := chain.Choose(&sampling.Input{Row: row}, 0, s); err != nil {
		t.Fatal(err)
	}
}

// TestScanInAStep: a plugin sees the same statistics and the same best candidates with
// any kernels and with none, and the best are those of the sorted row.
func TestScanInAStep(t *testing.T) {
	rows := scanRows(rand.New(rand.NewPCG(6, 6)))
	for kernels, scan := range scans(t) {
		t.Run(kernels, func(t *testing.T) {
			fast, plain := &sampling.Scratch{Scan: scan}, &sampling.Scratch{}
			for name, row := range rows {
				var all []sampling.Candidate
				for i, l := range row {
					if l >= -math.MaxFloat32 && l <= math.MaxFloat32 {
						all = append(all, sampling.Candidate{ID: int32(i), Logit: l})
					}
				}
				slices.SortStableFunc(all, func(a, b sampling.Candidate) int {
					switch {
					case a.Logit > b.Logit:
						return -1
					case a.Logit < b.Logit:
						return 1
					}
					return 0
				})
				for _, n := range []int{1, 40, 256, 4096} {
					got, want := &looker{n: n}, &looker{n: n}
					got.look(t, row, fast)
					want.look(t, row, plain)
					a, b := got.stats, want.stats
					if a.Finite != b.Finite || !bits(float64(a.Max), float64(b.Max)) || !bits(float64(a.Mean), float64(b.Mean)) ||
						!bits(float64(a.Std), float64(b.Std)) || !bits(float64(a.LogSumExp), float64(b.LogSumExp)) || !bits(float64(a.Entropy), float64(b.Entropy)) {
						t.Errorf("%s: statistics %+v, want %+v", name, a, b)
					}
					if sorted := all[:min(n, len(all))]; !slices.Equal(got.top, sorted) || !slices.Equal(want.top, sorted) {
						t.Errorf("%s: top %d is not the sorted row's", name, n)
					}
				}
			}
		})
	}
}

// BenchmarkScan is statistics and the 256 best of 262,144 logits; min-µs is the best step.
func BenchmarkScan(b *testing.B) {
	row := scanRows(rand.New(rand.NewPCG(6, 6)))["vocabulary"]
	all := scans(b)
	all["go"] = nil
	for kernels, scan := range all {
		b.Run(kernels, func(b *testing.B) {
			l, s := &looker{n: 256}, &sampling.Scratch{Scan: scan}
			b.ReportAllocs()
			for b.Loop() {
				l.look(b, row, s)
			}
			b.ReportMetric(float64(l.least.Nanoseconds())/1e3, "min-µs")
		})
	}
}
