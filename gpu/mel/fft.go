package mel

import "math"

// fft is a plan for the spectra of real frames of one even length. It is a mixed
// radix transform (Cooley and Tukey, 1965) of half the length, since the two halves
// of a real frame fit into the two parts of complex numbers.
type fft struct {
	n       int          // samples of a frame
	factors []int        // of n/2, small first
	turns   []complex128 // turns[k] = exp(-2πik/(n/2)): [n/2]
	halves  []complex128 // halves[k] = exp(-2πik/n): [n/2]
	in, out []complex128 // [n/2]
	tmp     []complex128 // one butterfly: [largest factor]
}

// newFFT makes a plan for frames of n samples; n is even.
func newFFT(n int) *fft {
	m := n / 2
	f := &fft{n: n, turns: make([]complex128, m), halves: make([]complex128, m), in: make([]complex128, m), out: make([]complex128, m)}
	for k := range m {
		f.turns[k] = unit(k, m)
		f.halves[k] = unit(k, n)
	}
	largest := 1
	for p, rest := 2, m; rest > 1; {
		switch {
		case rest%p == 0:
			f.factors, rest, largest = append(f.factors, p), rest/p, p
		case p*p > rest:
			p = rest
		default:
			p++
		}
	}
	f.tmp = make([]complex128, largest)
	return f
}

// unit is exp(-2πik/n).
func unit(k, n int) complex128 {
	s, c := math.Sincos(-2 * math.Pi * float64(k) / float64(n))
	return complex(c, s)
}

// power writes |X[k]|² of a real frame: x: [n], out: [n/2+1].
func (f *fft) power(x []float64, out []float64) {
	m := f.n / 2
	for i := range f.in {
		f.in[i] = complex(x[2*i], x[2*i+1])
	}
	f.transform(f.out, f.in, 1, 0)
	for k := range m/2 + 1 {
		a, b := f.out[k], f.out[(m-k)%m]
		even := (a + conj(b)) / 2
		odd := (a - conj(b)) * complex(0, -0.5)
		t := f.halves[k] * odd
		out[k] = square(even + t)
		out[m-k] = square(conj(even - t))
	}
}

func conj(z complex128) complex128 { return complex(real(z), -imag(z)) }

func square(z complex128) float64 { return real(z)*real(z) + imag(z)*imag(z) }

// transform writes the transform of every stride-th element of src to dst. depth
// counts the factors taken out so far: len(dst) is what is left of the length.
func (f *fft) transform(dst, src []complex128, stride, depth int) {
	n := len(dst)
	if n == 1 {
		dst[0] = src[0]
		return
	}
	p := f.factors[depth]
	part := n / p
	for i := range p {
		f.transform(dst[i*part:(i+1)*part], src[i*stride:], stride*p, depth+1)
	}
	if p == 2 {
		for k := range part {
			a, b := dst[k], dst[part+k]*f.turns[k*stride]
			dst[k], dst[part+k] = a+b, a-b
		}
		return
	}
	whole, tmp := len(f.turns), f.tmp[:p]
	for k := range part {
		for i := range tmp {
			tmp[i] = dst[i*part+k] * f.turns[i*k*stride]
		}
		for j := range p {
			sum, step := tmp[0], j*part*stride%whole
			for i, at := 1, step; i < p; i++ {
				sum += tmp[i] * f.turns[at]
				if at += step; at >= whole {
					at -= whole
				}
			}
			dst[j*part+k] = sum
		}
	}
}
