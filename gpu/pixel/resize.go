package pixel

import (
	"math"
	"runtime"
	"sync"
)

// Filter is the kernel of a resize.
type Filter int

// The filters of Pillow that models are trained with.
const (
	Bilinear Filter = iota // triangle, support 1
	Bicubic                // Keys with a = -0.5, support 2
	Lanczos                // windowed sinc, support 3
)

func (f Filter) String() string {
	switch f {
	case Bilinear:
		return "bilinear"
	case Bicubic:
		return "bicubic"
	}
	return "lanczos"
}

func (f Filter) support() float64 { return float64(f) + 1 }

// at is the kernel's value at x. The conversions keep compilers from contracting
// products and sums, which would change last bits on some processors.
func (f Filter) at(x float64) float64 {
	if f == Lanczos {
		if -3 <= x && x < 3 {
			return sinc(x) * sinc(x/3)
		}
		return 0
	}
	x = math.Abs(x)
	if f == Bilinear {
		return max(1-x, 0)
	}
	const a = -0.5
	switch {
	case x < 1:
		return float64(float64(float64(float64((a+2)*x)-(a+3))*x)*x) + 1
	case x < 2:
		return float64(float64(float64(float64(float64(float64(x-5)*x)+8)*x)-4) * a)
	}
	return 0
}

func sinc(x float64) float64 {
	if x == 0 {
		return 1
	}
	x *= math.Pi
	return math.Sin(x) / x
}

// bits are the fractional bits of a weight: 32 less 8 of a sample and 2 of headroom.
const bits = 22

// taps says of which samples each output sample is made: of count[i] from from[i]
// on, with the weights at[size·i : size·i+count[i]].
type taps struct {
	from, count []int
	at          []int32
	size        int
}

// weigh computes the taps that turn in samples into out.
func weigh(in, out int, f Filter) taps {
	scale := float64(in) / float64(out)
	wide := max(scale, 1) // a smaller picture is made of wider kernels
	support := float64(f.support() * wide)
	t := taps{from: make([]int, out), count: make([]int, out), size: int(math.Ceil(support))*2 + 1}
	t.at = make([]int32, out*t.size)
	exact := make([]float64, t.size)
	for i := range out {
		centre := float64((float64(i) + 0.5) * scale)
		from := max(int(centre-support+0.5), 0)
		n := min(int(centre+support+0.5), in) - from
		sum := 0.0
		for x := range n {
			exact[x] = f.at(float64((float64(x+from) - centre + 0.5) * (1 / wide)))
			sum += exact[x]
		}
		for x, w := range exact[:n] {
			if sum != 0 {
				w /= sum
			}
			w = float64(w * (1 << bits))
			if w < 0 {
				t.at[t.size*i+x] = int32(w - 0.5)
			} else {
				t.at[t.size*i+x] = int32(w + 0.5)
			}
		}
		t.from[i], t.count[i] = from, n
	}
	return t
}

// Resize makes a picture of w×h pixels. Where both sides stay, the result shares
// m's memory. Sides below one and a picture that fails Check are the caller's
// mistake and panic.
func Resize(m Image, w, h int, f Filter) Image {
	if err := m.Check(); err != nil {
		panic(err)
	}
	if w != m.W {
		m = across(m, w, f)
	}
	if h != m.H {
		m = down(m, h, f)
	}
	return m
}

// round is half a unit, which turns the cut of a shift into rounding.
const round = 1 << (bits - 1)

func clip(v int32) uint8 {
	v >>= bits
	if uint32(v) > 255 {
		return uint8(^(v >> 31)) // 0 below, 255 above
	}
	return uint8(v)
}

// pair holds one pixel of two rows: a sample of the first row in the low half of each
// word, of the second in the high half. One product then serves both. Halves stay
// below 2^31 in size, so the low one borrows at most one from the high one, which
// apart gives back.
type pair struct{ r, g, b int64 }

func apart(v int64) (first, second uint8) {
	low := int32(v)
	return clip(low), clip(int32((v - int64(low)) >> 32))
}

// across resizes each row, two at a time.
func across(m Image, w int, f Filter) Image {
	t, out := weigh(m.W, w, f), New(w, m.H)
	pairs := (m.H + 1) / 2
	split(pairs, m.H*w*t.size, func(from, until int) {
		both := make([]pair, m.W)
		for i := from; i < until; i++ {
			y, z := 2*i, min(2*i+1, m.H-1) // a last row without a partner is its own
			interleave(both, m.row(y), m.row(z))
			t.acrossRows(out.row(y), out.row(z), both)
		}
	})
	return out
}

func interleave(both []pair, first, second []uint8) {
	first, second = first[:3*len(both)], second[:3*len(both)]
	for i := range both {
		p, q := first[3*i:][:3], second[3*i:][:3]
		both[i] = pair{
			int64(p[0]) | int64(q[0])<<32,
			int64(p[1]) | int64(q[1])<<32,
			int64(p[2]) | int64(q[2])<<32,
		}
	}
}

func (t *taps) acrossRows(first, second []uint8, both []pair) {
	const half = round | round<<32
	for i, from := range t.from {
		k := t.at[t.size*i:][:t.count[i]]
		p := both[from:][:len(k)]
		var r, g, b int64 = half, half, half
		for x, w := range k {
			q := &p[x]
			r += q.r * int64(w)
			g += q.g * int64(w)
			b += q.b * int64(w)
		}
		d, e := first[3*i:][:3], second[3*i:][:3]
		d[0], e[0] = apart(r)
		d[1], e[1] = apart(g)
		d[2], e[2] = apart(b)
	}
}

// down resizes each column, whole rows at a time.
func down(m Image, h int, f Filter) Image {
	t, out := weigh(m.H, h, f), New(m.W, h)
	split(h, h*m.W*t.size, func(from, until int) {
		sum := make([]int32, 3*m.W)
		for y := from; y < until; y++ {
			for i := range sum {
				sum[i] = round
			}
			at, k := t.from[y], t.at[t.size*y:][:t.count[y]]
			for ; len(k) >= 4; at, k = at+4, k[4:] {
				addRows(sum, m.Pix[3*m.W*at:][:4*3*m.W], [4]int32(k))
			}
			for i, w := range k {
				addRow(sum, m.row(at+i), w)
			}
			dst := out.row(y)[:len(sum)]
			for i, v := range sum {
				dst[i] = clip(v)
			}
		}
	})
	return out
}

// addRow adds a weighted row. [3·W] both
func addRow(sum []int32, row []uint8, w int32) {
	row = row[:len(sum)]
	for i := range sum {
		sum[i] += int32(row[i]) * w
	}
}

// addRows adds four rows that follow one another: four products for one reading and
// writing of a sum. rows: [4, 3·W]
func addRows(sum []int32, rows []uint8, w [4]int32) {
	n := len(sum)
	a, b, c, d := rows[:n], rows[n:][:n], rows[2*n:][:n], rows[3*n:][:n]
	for i := range sum {
		sum[i] += int32(a[i])*w[0] + int32(b[i])*w[1] + int32(c[i])*w[2] + int32(d[i])*w[3]
	}
}

// workers bounds the goroutines of one resize: pictures of one request are resized
// beside a model that computes.
const workers = 2

// split runs f over the rows from 0 to n, on several goroutines where there are
// more than a few milliseconds of products.
func split(n, products int, f func(from, until int)) {
	k := min(workers, runtime.GOMAXPROCS(0), n)
	if products < 1<<20 || k < 2 {
		f(0, n)
		return
	}
	var wait sync.WaitGroup
	for i := 1; i < k; i++ {
		wait.Go(func() { f(n*i/k, n*(i+1)/k) })
	}
	f(0, n/k)
	wait.Wait()
}
