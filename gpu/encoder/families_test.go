package encoder_test

import (
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"ganglion/gpu/encoder"
	"ganglion/gpu/gguf/gguftest"
	"ganglion/gpu/mel"
	"ganglion/gpu/ops"
	"ganglion/gpu/ops/ref"
	"ganglion/gpu/pixel"
)

// file writes a tiny encoder and opens it.
func (m *tiny) open(t *testing.T) *encoder.Encoder {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	if err := gguftest.Write(path, m.model); err != nil {
		t.Fatal(err)
	}
	b := ref.New()
	t.Cleanup(func() { b.Close() })
	e, err := encoder.Open(context.Background(), encoder.Config{Path: path, Backend: b, Numerics: ops.Exact})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// noise is a random picture.
func noise(w, h int) pixel.Image {
	r := rand.New(rand.NewPCG(1, 2))
	m := pixel.New(w, h)
	for i := range m.Pix {
		m.Pix[i] = uint8(r.IntN(256))
	}
	return m
}

// patches are the products of a picture's patches with the convolution.
func (m *tiny) patches(p pixel.Image) rows {
	mean, std := []float64{0.4, 0.5, 0.6}, []float64{0.3, 0.2, 0.25}
	var out rows
	for y := 0; y < p.H; y += tinyPatch {
		for x := 0; x < p.W; x += tinyPatch {
			var in row
			for c := range 3 {
				for dy := range tinyPatch {
					for dx := range tinyPatch {
						in = append(in, (float64(p.Pix[3*((y+dy)*p.W+x+dx)+c])/255-mean[c])/std[c])
					}
				}
			}
			out = append(out, m.times("v.patch_embd", in))
		}
	}
	return out
}

// compare holds the one piece of a picture, or one of them, against rows.
func compare(t *testing.T, got encoder.Piece, want rows) {
	t.Helper()
	var flat []float32
	for _, r := range want {
		for _, v := range r {
			flat = append(flat, float32(v))
		}
	}
	if len(flat) != len(got.Rows) || got.N != len(want) {
		t.Fatalf("%d rows of %d values, want %d of %d", got.N, len(got.Rows), len(want), len(flat))
	}
	d, cosine := difference(got.Rows, flat)
	t.Logf("max |d| %.5f, cosine %.7f", d, cosine)
	if !(d <= maxDifference && cosine >= minCosine) {
		t.Errorf("max |d| %.5f, cosine %.7f", d, cosine)
	}
}

func encodeOne(t *testing.T, e *encoder.Encoder, p pixel.Image, pieces int) []encoder.Piece {
	t.Helper()
	got, err := e.EncodePicture(context.Background(), p, encoder.PictureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l, err := e.Picture(encoder.Size{W: p.W, H: p.H}, encoder.PictureOptions{})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, part := range l.Parts {
		if part.N > 0 {
			if n < len(got) && got[n].N != part.N {
				t.Errorf("piece %d has %d rows, the layout says %d", n, got[n].N, part.N)
			}
			n++
		}
	}
	if len(got) != pieces || n != pieces {
		t.Fatalf("%d pieces, the layout has %d, want %d", len(got), n, pieces)
	}
	return got
}

func TestLLaVA(t *testing.T) {
	m := newTinySeer("mlp", 3, 16)
	m.add("v.patch_embd.weight", tinyPatch, tinyPatch, 3, tinyWidth)
	m.add("v.class_embd", tinyWidth)
	m.add("v.position_embd.weight", tinyWidth, 17)
	m.norm("v.pre_ln.weight", tinyWidth)
	m.add("v.pre_ln.bias", tinyWidth)
	m.layers("v.", 3, false, false, true)
	m.linear("mm.0", tinyWidth, tinyHidden, true)
	m.linear("mm.2", tinyHidden, tinyOut, true)

	p := noise(16, 16)
	xs := append(rows{m.tensors["v.class_embd"]}, m.patches(p)...)
	for i := range xs {
		xs[i] = m.layerNorm("v.pre_ln", 1e-5, sum(xs[i], m.tensors["v.position_embd.weight"][i*tinyWidth:(i+1)*tinyWidth]))
	}
	xs = m.transform("v.", 2, false, gelu, nil, xs)[1:] // the last layer but one, without the class
	want := each(xs, func(x row) row { return m.times("mm.2", gelu(m.times("mm.0", x))) })
	compare(t, encodeOne(t, m.open(t), p, 1)[0], want)
}

func TestInternVL(t *testing.T) {
	m := newTinySeer("internvl", 2, 16, gguftest.KV{Key: "clip.vision.projector.scale_factor", Value: uint32(2)})
	m.linear("v.patch_embd", 3*tinyPatch*tinyPatch, tinyWidth, true)
	m.add("v.class_embd", tinyWidth)
	m.add("v.position_embd.weight", tinyWidth, 17)
	m.layers("v.", 2, false, false, true)
	m.norm("mm.0.weight", 4*tinyWidth)
	m.add("mm.0.bias", 4*tinyWidth)
	m.linear("mm.1", 4*tinyWidth, tinyHidden, true)
	m.linear("mm.3", tinyHidden, tinyOut, true)

	p := noise(16, 16)
	xs := append(rows{m.tensors["v.class_embd"]}, m.patches(p)...)
	for i := range xs {
		xs[i] = sum(xs[i], m.tensors["v.position_embd.weight"][i*tinyWidth:(i+1)*tinyWidth])
	}
	xs = m.transform("v.", 2, false, gelu, nil, xs)[1:]
	var want rows
	for y := range 2 {
		for x := range 2 {
			var four row
			for _, at := range []int{8*y + 2*x, 8*y + 2*x + 1, 8*y + 4 + 2*x, 8*y + 5 + 2*x} {
				four = append(four, xs[at]...)
			}
			want = append(want, m.times("mm.3", gelu(m.times("mm.1", m.layerNorm("mm.0", 1e-5, four)))))
		}
	}
	e := m.open(t)
	compare(t, encodeOne(t, e, p, 1)[0], want)
	encodeOne(t, e, noise(48, 16), 4)  // three tiles and the whole
	encodeOne(t, e, noise(40, 40), 10) // 3 × 3: a square, and more than half its pixels
}

func TestPixtral(t *testing.T) {
	m := newTinySeer("pixtral", 2, 16, gguftest.KV{Key: "clip.vision.spatial_merge_size", Value: uint32(2)})
	m.add("v.patch_embd.weight", tinyPatch, tinyPatch, 3, tinyWidth)
	m.norm("v.pre_ln.weight", tinyWidth)
	m.layers("v.", 2, true, true, false)
	m.norm("mm.input_norm.weight", tinyWidth)
	merger := m.add("mm.patch_merger.weight", 4*tinyWidth, tinyWidth)
	m.linear("mm.1", tinyWidth, tinyHidden, false)
	m.linear("mm.2", tinyHidden, tinyOut, false)
	ending := m.add("v.token_embd.img_break", tinyOut)

	const w, h = 48, 24 // 6 × 3 rows of 2 × 2 patches
	p := noise(w, h)
	xs := each(m.patches(p), func(x row) row { return m.rmsNorm("v.pre_ln", 1e-5, x) })
	d := tinyWidth / tinyHeads
	turn := func(i int, head row) row { // pairs of neighbours: the file's order of the published halves
		y, x := i/(w/tinyPatch), i%(w/tinyPatch)
		out := make(row, d)
		for k := range d / 2 {
			angle := float64(y) * math.Pow(10000, -float64(4*k)/float64(d))
			if k >= d/4 {
				angle = float64(x) * math.Pow(10000, -float64(4*(k-d/4)+2)/float64(d))
			}
			a, b := head[2*k], head[2*k+1]
			out[2*k], out[2*k+1] = a*math.Cos(angle)-b*math.Sin(angle), a*math.Sin(angle)+b*math.Cos(angle)
		}
		return out
	}
	silu := func(x row) row {
		y := make(row, len(x))
		for i, v := range x {
			y[i] = v / (1 + math.Exp(-v))
		}
		return y
	}
	for i := range m.model.KV {
		if m.model.KV[i].Key == "clip.use_gelu" {
			m.model.KV[i].Key = "clip.use_silu"
		}
	}
	xs = each(m.transform("v.", 2, true, silu, turn, xs), func(x row) row { return m.rmsNorm("mm.input_norm", 1e-5, x) })
	var want rows
	for y := range 3 {
		if y > 0 {
			want = append(want, ending)
		}
		for x := range 6 {
			out := make(row, tinyWidth)
			for o := range out {
				for c := range tinyWidth {
					for k := range 4 { // torch's unfold: a channel's window, then the next channel
						out[o] += merger[(o*tinyWidth+c)*4+k] * xs[(2*y+k/2)*12+2*x+k%2][c]
					}
				}
			}
			want = append(want, m.times("mm.2", gelu(m.times("mm.1", out))))
		}
	}
	compare(t, encodeOne(t, m.open(t), p, 1)[0], want)
}

func TestLFM2(t *testing.T) {
	m := newTinySeer("lfm2", 2, 16, gguftest.KV{Key: "clip.vision.projector.scale_factor", Value: uint32(2)},
		gguftest.KV{Key: "clip.vision.preproc_image_size", Value: uint32(64)})
	m.linear("v.patch_embd", 3*tinyPatch*tinyPatch, tinyWidth, true)
	learned := m.add("v.position_embd.weight", tinyWidth, 9)
	m.layers("v.", 2, false, false, true)
	m.norm("v.post_ln.weight", tinyWidth)
	m.add("v.post_ln.bias", tinyWidth)
	m.norm("mm.input_norm.weight", 4*tinyWidth)
	m.add("mm.input_norm.bias", 4*tinyWidth)
	m.linear("mm.1", 4*tinyWidth, tinyHidden, true)
	m.linear("mm.2", tinyHidden, tinyOut, true)

	const nx, ny = 20, 18
	p := noise(nx*tinyPatch, ny*tinyPatch)
	xs := m.patches(p)
	for i := range xs { // bilinear between the middles of 3 × 3 cells
		at := func(k, n int) (int, int, float64) {
			s := min(max((float64(k)+0.5)*3/float64(n)-0.5, 0), 2)
			return int(s), min(int(s)+1, 2), s - math.Floor(s)
		}
		x0, x1, fx := at(i%nx, nx)
		y0, y1, fy := at(i/nx, ny)
		for c := range tinyWidth {
			v := func(y, x int) float64 { return learned[(y*3+x)*tinyWidth+c] }
			xs[i][c] += (v(y0, x0)*(1-fx)+v(y0, x1)*fx)*(1-fy) + (v(y1, x0)*(1-fx)+v(y1, x1)*fx)*fy
		}
	}
	xs = each(m.transform("v.", 2, false, gelu, nil, xs), func(x row) row { return m.layerNorm("v.post_ln", 1e-5, x) })
	var want rows
	for y := range ny / 2 {
		for x := range nx / 2 {
			var four row
			for k := range 4 {
				four = append(four, xs[(2*y+k/2)*nx+2*x+k%2]...)
			}
			want = append(want, m.times("mm.2", gelu(m.times("mm.1", m.layerNorm("mm.input_norm", 1e-5, four)))))
		}
	}
	e := m.open(t)
	compare(t, encodeOne(t, e, p, 1)[0], want)
	encodeOne(t, e, noise(256, 192), 7) // 3 × 2: the 4 × 3 of its shape are more than ten
}

func TestVoxtral(t *testing.T) {
	const bins, steps = 8, 1500
	m := newTiny("voxtral", "clip.audio.", 1, gguftest.KV{Key: "clip.has_audio_encoder", Value: true},
		gguftest.KV{Key: "clip.audio.num_mel_bins", Value: uint32(bins)})
	m.add("a.conv1d.1.weight", 3, bins, tinyWidth)
	m.add("a.conv1d.1.bias", tinyWidth)
	m.add("a.conv1d.2.weight", 3, tinyWidth, tinyWidth)
	m.add("a.conv1d.2.bias", tinyWidth)
	m.add("a.position_embd.weight", tinyWidth, steps)
	m.layers("a.", 1, false, false, false)
	m.norm("a.post_ln.weight", tinyWidth)
	m.add("a.post_ln.bias", tinyWidth)
	m.linear("mm.a.mlp.1", 4*tinyWidth, tinyHidden, false)
	m.linear("mm.a.mlp.2", tinyHidden, tinyOut, false)

	r := rand.New(rand.NewPCG(3, 4))
	samples := make([]float32, 40000)
	for i := range samples {
		samples[i] = float32(0.3*math.Sin(float64(i)*0.05) + 0.1*r.NormFloat64())
	}
	spectra, err := mel.Whisper(context.Background(), samples, bins)
	if err != nil {
		t.Fatal(err)
	}
	s := spectra[0]
	frames := make(rows, s.Frames)
	for i := range frames {
		for b := range bins {
			frames[i] = append(frames[i], float64(s.Rows[i*bins+b]))
		}
	}
	xs := m.convolve("a.conv1d.2", 2, m.convolve("a.conv1d.1", 1, frames))
	for i := range xs {
		xs[i] = sum(xs[i], m.tensors["a.position_embd.weight"][i*tinyWidth:(i+1)*tinyWidth])
	}
	xs = each(m.transform("a.", 1, false, geluErf, nil, xs), func(x row) row { return m.layerNorm("a.post_ln", 1e-5, x) })
	var want rows
	for i := 0; i+4 <= steps; i += 4 {
		var four row
		for k := range 4 {
			four = append(four, xs[i+k]...)
		}
		want = append(want, m.times("mm.a.mlp.2", geluErf(m.times("mm.a.mlp.1", four))))
	}
	got, err := m.open(t).EncodeSound(context.Background(), samples)
	if err != nil || len(got) != 1 {
		t.Fatalf("%d pieces, error %v", len(got), err)
	}
	compare(t, got[0], want)
}

// convolve is a convolution of 3 over time with zeros around, and its GELU.
func (m *tiny) convolve(name string, stride int, in rows) rows {
	w, b := m.tensors[name+".weight"], m.tensors[name+".bias"]
	n := len(in[0])
	var out rows
	for t := 0; t < len(in); t += stride {
		y := make(row, tinyWidth)
		for o := range y {
			y[o] = b[o]
			for c := range n {
				for k := range 3 {
					if f := t + k - 1; f >= 0 && f < len(in) {
						y[o] += w[(o*n+c)*3+k] * in[f][c]
					}
				}
			}
		}
		out = append(out, geluErf(y))
	}
	return out
}
