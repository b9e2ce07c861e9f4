package encoder_test

import (
	"math"
	"math/rand/v2"

	"ganglion/gpu/gguf/gguftest"
	"ganglion/gpu/tensor"
)

// A second way of computing towers: rows of float64, one function for each thing that the
// text of a family names, no plan and nothing of gpu/encoder. It is what the families
// without recorded answers are held against.

// row is one vector; rows are those of a picture.
type (
	row  []float64
	rows []row
)

// tiny is a random encoder file: its tensors by name, as the plain way reads them.
type tiny struct {
	r       *rand.Rand
	model   gguftest.Model
	tensors map[string]row
}

const (
	tinyWidth  = 16
	tinyHeads  = 2
	tinyHidden = 24
	tinyOut    = 12
	tinyPatch  = 4
)

func newTiny(kind, prefix string, layers int, kv ...gguftest.KV) *tiny {
	m := &tiny{r: rand.New(rand.NewPCG(7, uint64(len(kind)))), tensors: map[string]row{}}
	m.model.KV = append([]gguftest.KV{
		{Key: "general.architecture", Value: "clip"}, {Key: "clip.projector_type", Value: kind}, {Key: "clip.use_gelu", Value: true},
		{Key: prefix + "embedding_length", Value: uint32(tinyWidth)}, {Key: prefix + "feed_forward_length", Value: uint32(tinyHidden)},
		{Key: prefix + "block_count", Value: uint32(layers)}, {Key: prefix + "attention.head_count", Value: uint32(tinyHeads)},
		{Key: prefix + "attention.layer_norm_epsilon", Value: float32(1e-5)}, {Key: prefix + "projection_dim", Value: uint32(tinyOut)},
	}, kv...)
	return m
}

func newTinySeer(kind string, layers, side int, kv ...gguftest.KV) *tiny {
	return newTiny(kind, "clip.vision.", layers, append([]gguftest.KV{
		{Key: "clip.has_vision_encoder", Value: true},
		{Key: "clip.vision.image_size", Value: uint32(side)}, {Key: "clip.vision.patch_size", Value: uint32(tinyPatch)},
		{Key: "clip.vision.image_mean", Value: []float32{0.4, 0.5, 0.6}}, {Key: "clip.vision.image_std", Value: []float32{0.3, 0.2, 0.25}},
	}, kv...)...)
}

// add draws a tensor; dims as GGUF has them.
func (m *tiny) add(name string, dims ...int) row {
	n := 1
	for _, d := range dims {
		n *= d
	}
	scale := 1 / math.Sqrt(float64(dims[0]))
	v := make(row, n)
	for i := range v {
		v[i] = float64(float32(m.r.NormFloat64() * scale))
		if len(dims) == 1 {
			v[i] = float64(float32(0.3 * m.r.NormFloat64()))
		}
	}
	return m.set(name, v, dims...)
}

// norm draws a norm's weight.
func (m *tiny) norm(name string, n int) {
	v := make(row, n)
	for i := range v {
		v[i] = float64(float32(1 + 0.2*m.r.NormFloat64()))
	}
	m.set(name, v, n)
}

func (m *tiny) set(name string, v row, dims ...int) row {
	m.tensors[name] = v
	f := make([]float32, len(v))
	for i := range v {
		f[i] = float32(v[i])
	}
	m.model.Tensors = append(m.model.Tensors, gguftest.Tensor{Name: name, Type: tensor.F32, Dims: dims, Data: gguftest.F32(f...)})
	return v
}

// linear draws NAME.weight and NAME.bias.
func (m *tiny) linear(name string, in, out int, bias bool) {
	m.add(name+".weight", in, out)
	if bias {
		m.add(name+".bias", out)
	}
}

// layers draws a tower's layers.
func (m *tiny) layers(prefix string, n int, rms, gate, kBias bool) {
	for il := range n {
		blk := prefix + "blk." + string(rune('0'+il)) + "."
		for _, norm := range []string{"ln1", "ln2"} {
			m.norm(blk+norm+".weight", tinyWidth)
			if !rms {
				m.add(blk+norm+".bias", tinyWidth)
			}
		}
		for _, name := range []string{"attn_q", "attn_k", "attn_v", "attn_out"} {
			m.linear(blk+name, tinyWidth, tinyWidth, !rms && (kBias || name != "attn_k"))
		}
		m.linear(blk+"ffn_up", tinyWidth, tinyHidden, !rms)
		m.linear(blk+"ffn_down", tinyHidden, tinyWidth, !rms)
		if gate {
			m.linear(blk+"ffn_gate", tinyWidth, tinyHidden, !rms)
		}
	}
}

// times is W·x + b.
func (m *tiny) times(name string, x row) row {
	w, b := m.tensors[name+".weight"], m.tensors[name+".bias"]
	y := make(row, len(w)/len(x))
	for i := range y {
		for k := range x {
			y[i] += w[i*len(x)+k] * x[k]
		}
		if b != nil {
			y[i] += b[i]
		}
	}
	return y
}

func (m *tiny) rmsNorm(name string, eps float64, x row) row {
	s := 0.0
	for _, v := range x {
		s += v * v
	}
	y := make(row, len(x))
	for i := range x {
		y[i] = x[i] / math.Sqrt(s/float64(len(x))+eps) * m.tensors[name+".weight"][i]
	}
	return y
}

func (m *tiny) layerNorm(name string, eps float64, x row) row {
	mean, s := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		s += (v - mean) * (v - mean) / float64(len(x))
	}
	y := make(row, len(x))
	for i := range x {
		y[i] = (x[i]-mean)/math.Sqrt(s+eps)*m.tensors[name+".weight"][i] + m.tensors[name+".bias"][i]
	}
	return y
}

func each(xs rows, f func(x row) row) rows {
	out := make(rows, len(xs))
	for i, x := range xs {
		out[i] = f(x)
	}
	return out
}

func gelu(x row) row {
	y := make(row, len(x))
	for i, v := range x {
		y[i] = 0.5 * v * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(v+0.044715*v*v*v)))
	}
	return y
}

func geluErf(x row) row {
	y := make(row, len(x))
	for i, v := range x {
		y[i] = 0.5 * v * (1 + math.Erf(v/math.Sqrt2))
	}
	return y
}

func sum(x, y row) row {
	z := make(row, len(x))
	for i := range x {
		z[i] = x[i] + y[i]
	}
	return z
}

// transform runs n layers; turn rotates a head of a row's query or key.
func (m *tiny) transform(prefix string, n int, rms bool, act func(row) row, turn func(i int, head row) row, xs rows) rows {
	norm := func(name string, x row) row {
		if rms {
			return m.rmsNorm(name, 1e-5, x)
		}
		return m.layerNorm(name, 1e-5, x)
	}
	for il := range n {
		blk := prefix + "blk." + string(rune('0'+il)) + "."
		normed := each(xs, func(x row) row { return norm(blk+"ln1", x) })
		q, k, v := make(rows, len(xs)), make(rows, len(xs)), make(rows, len(xs))
		for i, x := range normed {
			q[i], k[i], v[i] = m.times(blk+"attn_q", x), m.times(blk+"attn_k", x), m.times(blk+"attn_v", x)
		}
		seen := attend(q, k, v, turn)
		for i := range xs {
			xs[i] = sum(xs[i], m.times(blk+"attn_out", seen[i]))
			x := norm(blk+"ln2", xs[i])
			up := m.times(blk+"ffn_up", x)
			if m.tensors[blk+"ffn_gate.weight"] != nil {
				gate := act(m.times(blk+"ffn_gate", x))
				for c := range up {
					up[c] *= gate[c]
				}
			} else {
				up = act(up)
			}
			xs[i] = sum(xs[i], m.times(blk+"ffn_down", up))
		}
	}
	return xs
}

// attend is softmax(q·kᵀ/√d)·v of every head over all rows.
func attend(q, k, v rows, turn func(i int, head row) row) rows {
	d := tinyWidth / tinyHeads
	out := make(rows, len(q))
	for i := range out {
		out[i] = make(row, tinyWidth)
	}
	for h := 0; h < tinyWidth; h += d {
		turned := func(xs rows, i int) row {
			if turn == nil {
				return xs[i][h : h+d]
			}
			return turn(i, xs[i][h:h+d])
		}
		keys := make(rows, len(k))
		for j := range k {
			keys[j] = turned(k, j)
		}
		for i := range q {
			query, total := turned(q, i), 0.0
			for j := range k {
				s := 0.0
				for c := range d {
					s += query[c] * keys[j][c]
				}
				e := math.Exp(s / math.Sqrt(float64(d)))
				total += e
				for c := range d {
					out[i][h+c] += e * v[j][h+c]
				}
			}
			for c := range d {
				out[i][h+c] /= total
			}
		}
	}
	return out
}
