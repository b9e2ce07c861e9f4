package encoder

import (
	"context"
	"fmt"
	"math"

	"ganglion/gpu/mel"
	"ganglion/gpu/ops"
)

// conformer is the tower of Gemma 4 for sound: two convolutions over time and frequency,
// each of which halves both, and blocks of feed-forward, local attention with relative
// positions, convolution and feed-forward.
//
// A row is one step of the second convolution. It goes in with the windows of the two
// steps of the first convolution that it brings along (im2col, made on the host); those
// of the second are gathered from the row and its neighbour.
//
// Relative positions are columns of queries and keys: behind each head of a key stand
// conformerPast columns, of which only the one of its position modulo conformerPast is 1,
// and behind each head of a query what each of the conformerPast distances adds, in the
// order of the keys' columns. Positions further away than that are not seen, so that the
// product is what the distance adds, and plain attention does the rest.
type conformer struct {
	bins     int
	channels [2]int
	width    int // of a head with its columns of positions
	per      int // columns of a row that goes in, without those of positions
}

const (
	conformerPast = 12 // positions that a query sees, itself included
	conformerCap  = 50
	conformerRows = (mel.WhisperFrames + 3) / 4
)

func newConformer(k *keys) *conformer {
	t := &conformer{bins: k.number("num_mel_bins", 128, maxBins)}
	if t.bins%4 != 0 {
		k.fail("key %q: %d is no multiple of 4", k.keys+"num_mel_bins", t.bins)
	}
	return t
}

func (t *conformer) maxRows() int { return conformerRows + 1 }

func (t *conformer) plan(g *graph) (*ops.Plan, error) {
	g.rms = true
	for i := range t.channels {
		name := fmt.Sprintf("a.conv1d.%d.weight", i)
		d := g.dims(name)
		if d == nil || d[3] > 4096 {
			return nil, fmt.Errorf("tensor %q is %v", name, d)
		}
		t.channels[i] = d[3]
	}
	t.width = g.headDim + conformerPast
	t.per = 2 * (t.bins / 2) * 9
	in := g.input(t.per + t.width)
	x := g.linear("a.input_projection", t.convolutions(g, in.Cols(0, t.per)), g.width)

	distances := g.List(ops.List{Name: "distances", Per: conformerPast, Units: conformerPast})
	g.cache = g.Cache(ops.Cache{Name: "layer", KVHeads: g.heads, KeyDim: t.width, ValueDim: g.headDim})
	for il := range g.layers {
		x = t.block(g, fmt.Sprintf("a.blk.%d.", il), x, in.Cols(t.per, t.width), distances)
	}
	x = g.RMSNorm("projector_norm", nil, g.eps, 0, g.linear("a.pre_encode.out", g.Outputs(x), 0))
	return g.done(g.linear("mm.a.input_projection", x, g.out))
}

// convolutions are both convolutions: [rows, frequencies/4 · channels].
func (t *conformer) convolutions(g *graph, in ops.View) ops.View {
	c := t.channels
	first := g.Buffer("conv1", t.bins*c[0]) // [2 steps, frequencies/2, channels]
	w := g.conv2d("a.conv1d.0", 1, c[0])
	for i := range t.bins {
		g.Add(&ops.MatMul{W: w, In: in.Cols(9*i, 9), Out: first.Cols(i*c[0], c[0])})
	}
	t.channelNorm(g, "a.conv1d.0.norm.weight", c[0], first)
	n := t.bins / 4
	list := g.List(ops.List{Name: "windows", Per: 9 * n, Units: t.bins})
	windows := g.gather("windows", list, c[0], 1, n*9*c[0], first)
	second := g.Buffer("conv2", n*c[1])
	w = g.conv2d("a.conv1d.1", c[0], c[1])
	for i := range n {
		g.Add(&ops.MatMul{W: w, In: windows.Cols(9*c[0]*i, 9*c[0]), Out: second.Cols(i*c[1], c[1])})
	}
	t.channelNorm(g, "a.conv1d.1.norm.weight", c[1], second)
	return second
}

func (t *conformer) channelNorm(g *graph, name string, n int, v ops.View) {
	g.Add(&ops.LayerNorm{W: g.matrix(name, n, 1), Eps: g.eps, Group: n, In: v, Out: v})
	g.activate(ops.ReLU, v)
}

// conv2d is a kernel [out, in, 3, 3] as a matrix over windows: [out, 3 · 3 · in].
func (g *graph) conv2d(name string, in, out int) *ops.Weight {
	v := g.floats(name+".weight", out*in*9)
	m := make([]float32, len(v))
	for o := range out {
		for c := range in {
			for k := range 9 {
				m[(o*9+k)*in+c] = v[(o*in+c)*9+k]
			}
		}
	}
	return g.derived(name+".weight (by place)", 9*in, m)
}

// block is one layer. What the file calls conv_norm stands before the module, norm_conv
// inside it.
func (t *conformer) block(g *graph, blk string, x, pattern ops.View, distances int) ops.View {
	x = g.Sum("x", x, t.half(g, blk, "", x))
	a := t.attention(g, blk, g.norm(blk+"attn_pre_norm", x), pattern, distances)
	x = g.Sum("x", x, g.norm(blk+"attn_post_norm", a))

	h := g.linear(blk+"conv_pw1", g.norm(blk+"conv_norm", x), 2*g.width)
	h = g.GLU("glu", ops.Sigmoid, h.Cols(g.width, g.width), h.Cols(0, g.width))
	taps := 5
	if d := g.dims(blk + "conv_dw.weight"); d != nil && d[0] <= 64 {
		taps = d[0]
	}
	conv := g.Buffer("conv", g.width)
	g.Add(&ops.ShortConv{W: g.matrix(blk+"conv_dw.weight", taps, g.width), In: h, Out: conv,
		State: g.State(ops.State{Name: blk + "conv", Floats: (taps - 1) * g.width})})
	x = g.Sum("x", x, g.linear(blk+"conv_pw2", g.activate(ops.SiLU, g.norm(blk+"norm_conv", conv)), g.width))

	x = g.Sum("x", x, t.half(g, blk, "_1", x))
	return g.norm(blk+"ln2", x)
}

// half is half of what a feed-forward network adds.
func (t *conformer) half(g *graph, blk, which string, x ops.View) ops.View {
	h := g.activate(ops.SiLU, g.linear(blk+"ffn_up"+which, g.norm(blk+"ffn_norm"+which, x), 0))
	return g.scale(0.5, g.norm(blk+"ffn_post_norm"+which, g.linear(blk+"ffn_down"+which, h, g.width)))
}

func (t *conformer) attention(g *graph, blk string, n, pattern ops.View, distances int) ops.View {
	q, k := t.widened(g, blk+"attn_q", n), t.widened(g, blk+"attn_k", n)
	v := g.linear(blk+"attn_v", n, g.width)
	g.Add(&ops.AddVec{W: t.queryScale(g, blk), Mul: true, In: q, Out: q})
	g.scale(math.Log1p(math.E)/math.Ln2, k)
	g.Add(&ops.Binary{Kind: ops.AddKind, A: k, B: pattern, Out: k})
	far := g.MatMul("far", t.relative(g, blk), nil, q)
	for h := range g.heads {
		g.Add(&ops.Gather{List: distances, Unit: 1, Terms: 1, In: far.Cols(h*conformerPast, conformerPast),
			Out: q.Cols(h*t.width+g.headDim, conformerPast)})
	}
	out := g.Buffer("attended", g.width)
	g.Add(&ops.KVStore{Cache: g.cache, K: k, V: v})
	g.Add(&ops.Attention{Cache: g.cache, Heads: g.heads, Scale: 1, Window: conformerPast, Softcap: conformerCap, Q: q, Out: out})
	return g.linear(blk+"attn_out", out, g.width)
}

// widened multiplies by a matrix with room for the columns of positions behind each head:
// zeros.
func (t *conformer) widened(g *graph, name string, in ops.View) ops.View {
	from := g.floats(name+".weight", g.width*g.width)
	w := make([]float32, g.heads*t.width*g.width)
	for h := range g.heads {
		copy(w[h*t.width*g.width:], from[h*g.headDim*g.width:(h+1)*g.headDim*g.width])
	}
	out := g.MatMul(name, g.derived(name+".weight (wide)", g.width, w), nil, g.limited(name+".input", in))
	return g.limited(name+".output", out)
}

// queryScale is per_dim_scale/(√head·ln 2) for each head's own columns. What was learned goes
// through softplus first, which the file's converter has done already (llama.cpp,
// conversion/gemma.py, Gemma4VisionAudioModel.modify_tensors); the reference multiplies with
// the tensor as it is (tools/mtmd/models/gemma4a.cpp).
func (t *conformer) queryScale(g *graph, blk string) *ops.Weight {
	s := g.floats(blk+"per_dim_scale.weight", g.headDim)
	all := make([]float32, g.heads*t.width)
	for h := range g.heads {
		for i, v := range s {
			all[h*t.width+i] = float32(float64(v) / (math.Sqrt(float64(g.headDim)) * math.Ln2))
		}
	}
	return g.derived(blk+"per_dim_scale", len(all), all)
}

// relative is the matrix that gives for each head and each distance the product of a query
// with the distance's vector, attn_k_rel times its sinusoids: [heads · distances, queries].
func (t *conformer) relative(g *graph, blk string) *ops.Weight {
	n, cols := g.width, g.heads*t.width
	w := g.floats(blk+"attn_k_rel.weight", n*n)
	m := make([]float32, g.heads*conformerPast*cols)
	for d := range conformerPast {
		s := sinusoids(d, n)
		for r := range n {
			sum := 0.0
			for c := range n {
				sum += float64(w[r*n+c]) * s[c]
			}
			h := r / g.headDim
			m[(h*conformerPast+d)*cols+h*t.width+r%g.headDim] = float32(sum)
		}
	}
	return g.derived(blk+"attn_k_rel (by distance)", cols, m)
}

// sinusoids are the sines and then the cosines of a position at n/2 time scales from 1 to
// 10,000.
func sinusoids(position, n int) []float64 {
	half := n / 2
	out := make([]float64, n)
	for i := range half {
		angle := float64(position) * math.Exp(-float64(i)*math.Log(10000)/float64(max(half-1, 1)))
		out[i], out[half+i] = math.Sin(angle), math.Cos(angle)
	}
	return out
}

// steps is what a convolution of 3 with steps of 2 leaves.
func steps(n int) int { return (n-1)/2 + 1 }

func (t *conformer) layout(samples int) (Layout, error) {
	var l Layout
	for _, frames := range mel.Gemma4Frames(samples) {
		if frames > 0 {
			l.framed("<|audio>", Part{N: steps(steps(frames))}, "<audio|>")
		}
	}
	if len(l.Parts) == 0 {
		return l, fmt.Errorf("encoder: a sound of %d samples gives no frame", samples)
	}
	return l, nil
}

func (t *conformer) jobs(ctx context.Context, samples []float32) ([]*job, error) {
	spectra, err := mel.Gemma4(ctx, samples, t.bins)
	if err != nil {
		return nil, err
	}
	var jobs []*job
	for _, s := range spectra {
		if s.Frames > 0 {
			jobs = append(jobs, t.job(s.Rows, s.Frames))
		}
	}
	return jobs, nil
}

// job is the run on one piece: rows are [frames, bins].
func (t *conformer) job(rows []float32, frames int) *job {
	middle := steps(frames) // steps of the first convolution
	n := steps(middle)
	width := t.per + t.width
	j := &job{rows: n, outs: n, embeds: make([]float32, n*width)}
	at := func(f, b int) float32 {
		if f < 0 || f >= frames || b < 0 || b >= t.bins {
			return 0
		}
		return rows[f*t.bins+b]
	}
	quarter, half := t.bins/4, t.bins/2
	windows, distances := make([]int32, 0, n*9*quarter), make([]int32, 0, n*conformerPast)
	for r := range n {
		row := j.embeds[r*width : (r+1)*width]
		for i := range 2 * half { // step 2r + i/half, frequency i%half
			for k := range 9 {
				row[9*i+k] = at(2*(2*r+i/half)-1+k/3, 2*(i%half)-1+k%3)
			}
		}
		row[width-conformerPast+r%conformerPast] = 1
		for f := range quarter {
			for k := range 9 {
				step, freq := 2*r-1+k/3, 2*f-1+k%3
				unit := int32(step*half + freq) // rows have two steps each
				if step < 0 || step >= middle || freq < 0 || freq >= half {
					unit = -1
				}
				windows = append(windows, unit)
			}
		}
		for m := range conformerPast {
			d := ((r-m)%conformerPast + conformerPast) % conformerPast
			distances = append(distances, int32(r*conformerPast+d))
		}
	}
	j.lists = [][]int32{windows, distances}
	return j
}
