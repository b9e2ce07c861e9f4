package probe

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"sync"

	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

// rows are the batches of most questions: many rows of two sequences, one row of each, a
// few, and one alone.
func rows() [][]int { return [][]int{{23, 18}, {1, 1}, {5, 0}, {0, 1}} }

// questions are all plans, made once. They are small, so that a slow device and the
// reference are done with each in milliseconds.
var questions = sync.OnceValue(allQuestions)

func allQuestions() []*question {
	qs := []*question{elementwise(), vocabulary(), candidates(), norms(), activations(), positions(), experts(ops.Route{Kind: ops.RouteSoftmax, TopK: 3, Norm: true, Scale: 2}, tensor.Q4_K)}
	qs = append(qs, experts(ops.Route{Kind: ops.RouteSigmoid, TopK: 2, Groups: 4, GroupsUsed: 2}, tensor.Q8_0),
		experts(ops.Route{Kind: ops.RouteRaw, TopK: 2}, tensor.MXFP4), experts(ops.Route{Kind: ops.RouteSqrtSoftplus, TopK: 2}, tensor.F16),
		experts(ops.Route{Kind: ops.RouteRawSigmoid, TopK: 2}, tensor.Q5_0))
	for _, t := range tensor.Types() {
		qs = append(qs, matrices(t))
	}
	for kv := range len(ops.KVTypes()) {
		qs = append(qs, attention(ops.KVType(kv)), layer(ops.KVType(kv), false))
	}
	return append(qs, layer(ops.KVF16, true), deepstack(), convolution(), mamba1(), mamba2(), delta(), adapter(), gather())
}

// column is an operand: so many columns of the embedding, drawn from [low, high].
type column struct {
	width     int
	low, high float64
}

// plain is a column of values around 0.
func plain(width int) column { return column{width, -2, 2} }

// ask makes a plan of an embedding whose columns are the operands, what build adds, and
// a head that reads its result as logits.
func ask(name string, operands []column, build func(b *ops.Builder, r *rand.Rand, in []ops.View) ops.View) *question {
	h := fnv.New64a()
	h.Write([]byte(name))
	r := rand.New(rand.NewPCG(h.Sum64(), 1))
	b := ops.NewBuilder(name)
	width := 0
	for _, c := range operands {
		width += c.width
	}
	table := &ops.Weight{Name: "table", Type: tensor.F32, Cols: width, Experts: 1}
	row := b.Embed(b.Weight(table), 1)
	var in []ops.View
	at := 0
	for _, c := range operands {
		in = append(in, row.Cols(at, c.width))
		at += c.width
	}
	logits := build(b, r, in)
	if b.Plan.Buffers[logits.Buf].Rows == ops.PerRow {
		logits = b.Outputs(logits)
	}
	table.Rows = logits.Width
	for range table.Rows {
		for _, c := range operands {
			for range c.width {
				table.Data = appendFloat(table.Data, c.low+(c.high-c.low)*r.Float64())
			}
		}
	}
	p := b.Plan
	p.Vocab, p.Embed, p.Context, p.Logits = logits.Width, width, 4096, logits
	return &question{name: name, plan: p, batches: rows()}
}

func appendFloat(data []byte, v float64) []byte {
	return binary.LittleEndian.AppendUint32(data, math.Float32bits(float32(v)))
}

// vector is a small weight of values in [low, high].
func vector(b *ops.Builder, r *rand.Rand, cols, rows int, low, high float64) *ops.Weight {
	w := &ops.Weight{Name: "v", Type: tensor.F32, Cols: cols, Rows: rows, Experts: 1}
	for range cols * rows {
		w.Data = appendFloat(w.Data, low+(high-low)*r.Float64())
	}
	return b.Weight(w)
}

// matrix is a weight of any type, see tensor.Random.
func matrix(b *ops.Builder, r *rand.Rand, t tensor.Type, cols, rows, experts int) *ops.Weight {
	return b.Weight(&ops.Weight{Name: t.String(), Type: t, Cols: cols, Rows: rows, Experts: experts, Data: tensor.Random(r, t, cols*rows*experts)})
}

// matrices looks rows of a matrix up and multiplies by another one, with a bias; neither
// has a whole number of tiles.
func matrices(t tensor.Type) *question {
	const cols, rows = 512, 75
	q := ask("matmul/"+t.String(), []column{plain(cols)}, func(b *ops.Builder, r *rand.Rand, in []ops.View) ops.View {
		looked := b.Embed(matrix(b, r, t, cols, rows, 1), 0.5)
		return b.MatMul("y", matrix(b, r, t, cols, rows, 1), vector(b, r, rows, 1, -1, 1), b.Sum("x", in[0], looked))
	})
	q.bound = matrixBound
	return q
}

// vocabulary has logits of three blocks, so that sums of blocks are added up.
func vocabulary() *question {
	return ask("vocabulary", []column{plain(32)}, func(b *ops.Builder, r *rand.Rand, in []ops.View) ops.View {
		return b.MatMul("y", matrix(b, r, tensor.F32, 32, 2500, 1), nil, in[0])
	})
}

// candidates has logits of several segments, of which many are chosen and many are equal.
func candidates() *question {
	q := ask("candidates", []column{plain(32)}, func(b *ops.Builder, r *rand.Rand, in []ops.View) ops.View {
		w := matrix(b, r, tensor.F32, 32, 9000, 1)
		const row, equal = 4 * 32, 700
		for at := 8000 * row; at < 8900*row; at += row { // as rows from 300 on, in turns
			copy(w.Data[at:at+row], w.Data[(300+at/row%equal)*row:])
		}
		return b.MatMul("y", w, nil, in[0])
	})
	q.batches, q.top = [][]int{{1, 1}, {4, 0}, {0, 1}}, 200
	return q
}

func elementwise() *question {
	return ask("elementwise", []column{plain(96), plain(96), plain(32)}, func(b *ops.Builder, r *rand.Rand, in []ops.View) ops.View {
		x := b.Sum("sum", in[0], in[1])
		y := b.Buffer("product", 96)
		b.Add(&ops.Binary{Kind: ops.MulKind, A: x, B: in[2], Out: y})
		z := b.Buffer("vector", 96)
		b.Add(&ops.AddVec{W: vector(b, r, 96, 1, -1, 1), In: y, Out: z})
		b.Add(&ops.AddVec{W: vector(b, r, 32, 1, 0.5, 2), Mul: true, In: z, Out: z})
		b.Add(&ops.Scale{Factor: 1.25, Offset: 0.1, Clamp: 3, In: z, Out: z})
		b.Add(&ops.Softcap{Cap: 2, In: z, Out: z})
		return z
	})
}

func norms() *question {
	return ask("norms", []column{plain(96)}, func(b *ops.Builder, r *rand.Rand, in []ops.View) ops.View {
		x := b.RMSNorm("whole", vector(b, r, 96, 1, 0.5, 1.5), 1e-6, 0, in[0])
		x = b.RMSNorm("groups", nil, 1e-6, 24, x)
		y := b.Buffer("layer", 96)
		b.Add(&ops.LayerNorm{W: vector(b, r, 96, 1, 0.5, 1.5), Bias: vector(b, r, 96, 1, -1, 1), Eps: 1e-5, In: x, Out: y})
		z := b.Buffer("l2", 96)
		b.Add(&ops.L2Norm{Eps: 1e-6, Group: 48, In: y, Out: z})
		return z
	})
}

// activations puts the result of each function beside that of the others.
func activations() *question {
	acts := []ops.Act{ops.Identity, ops.SiLU, ops.GELU, ops.GELUErf, ops.GELUQuick, ops.ReLU, ops.ReLU2, ops.Sigmoid, ops.Tanh, ops.Softplus, ops.Exponential}
	const n = 16
	return ask("activations", []column{{n, -4, 4}, {n, -4, 4}}, func(b *ops.Builder, r *rand.Rand, in []ops.View) ops.View {
		out := b.Buffer("all", 2*n*len(acts)+n)
		for i, act := range acts {
			b.Add(&ops.Unary{Act: act, In: in[0], Out: out.Cols(2*n*i, n)})
			b.Add(&ops.GLU{Act: act, Gate: in[0], Up: in[1], Out: out.Cols(2*n*i+n, n)})
		}
		b.Add(&ops.GLU{Act: ops.SiLU, Limit: 2, Alpha: 1.7, UpOffset: 1, Gate: in[0], Up: in[1], Out: out.Cols(2*n*len(acts), n)})
		return out
	})
}

// positions are the operations that know where a row stands.
func positions() *question {
	return ask("positions", []column{plain(96), plain(96)}, func(b *ops.Builder, r *rand.Rand, in []ops.View) ops.View {
		table := b.Table(&ops.RoPETable{NRot: 16, Base: 10000, Scale: 1, Magnitude: 1})
		axes := b.Table(axesOf(16))
		learned := b.Buffer("learned", 96)
		b.Add(&ops.Embed{Table: matrix(b, r, tensor.F16, 96, 64, 1), Scale: 1, ByPosition: true, Out: learned})
		x := b.Sum("x", in[0], learned)
		b.Add(&ops.RoPE{Table: table, HeadDim: 24, Start: 4, In: x, Out: x})
		b.Add(&ops.RoPE{Table: axes, HeadDim: 32, Start: 8, In: x, Out: x})
		y := b.RoPE(axes, 48, true, b.RoPE(table, 32, true, in[1]))
		b.Add(&ops.PosScale{Floor: 4, Offset: 1, Scale: 0.1, In: y, Out: y})
		return b.Sum("sum", x, y)
	})
}

// axesOf is a table whose pairs turn by time, line and column in turn, the first two by time.
func axesOf(columns int) *ops.RoPETable {
	t := &ops.RoPETable{NRot: columns, Base: 1000, Scale: 1, Magnitude: 1, Axes: make([]uint8, columns/2)}
	for i := range t.Axes {
		t.Axes[i] = uint8(max(i-1, 0) % ops.Axes)
	}
	return t
}

// deepstack adds slices of the embeddings that some rows have for a token.
func deepstack() *question {
	const n = 96
	return ask("deepstack", []column{plain(n)}, func(b *ops.Builder, _ *rand.Rand, in []ops.View) ops.View {
		b.Plan.Slices = 2
		x := b.Buffer("first", n)
		b.Add(&ops.Deepstack{Slice: 1, In: in[0], Out: x})
		x = b.Outputs(x)
		b.Add(&ops.Deepstack{Slice: 2, In: x, Out: x})
		return x
	})
}

// attention has a sequence of more than a chunk of positions, over a cache without and
// ones with windows, where rows of pictures see to their end, or nothing before them.
func attention(kv ops.KVType) *question {
	const heads, kvHeads, dim = 4, 2, 48
	q := ask("attention/"+kv.String(), []column{plain(heads * dim), plain(kvHeads * dim), plain(kvHeads * dim)}, func(b *ops.Builder, r *rand.Rand, in []ops.View) ops.View {
		b.Plan.Spans = 2
		var out ops.View
		for i, a := range []ops.Attention{
			{Heads: heads, Scale: 0.15, Sinks: vector(b, r, heads, 1, -1, 1), Softcap: 20, Span: 1},
			{Heads: heads, Scale: 0.15, Window: 70, ALiBi: 8},
			{Heads: heads, Scale: 0.15, Window: 64, Chunked: true, Span: 2},
		} {
			a.Cache = b.Cache(ops.Cache{Name: "kv", KVHeads: kvHeads, KeyDim: dim, ValueDim: dim, Window: a.Window})
			b.Add(&ops.KVStore{Cache: a.Cache, K: in[1], V: in[2]})
			a.Q, a.Out = in[0], b.Buffer("attention", heads*dim)
			b.Add(&a)
			if i == 0 {
				out = a.Out
			} else {
				out = b.Sum("sum", out, a.Out)
			}
		}
		return out
	})
	q.kv, q.batches, q.bound = kv, chunkful(), chainBound
	return q
}

// chunkful are batches of a sequence that grows beyond a chunk of positions, and of a short
// one beside it: many rows, a few and one.
func chunkful() [][]int {
	return [][]int{{60, 4}, {64, 0}, {64, 0}, {64, 0}, {33, 1}, {1, 1}, {0, 1}, {3, 2}}
}

// layer is a layer with all that backends take together: norms of branches and of heads,
// products of one input, the gate and the residual stream. Each cache has it with another
// kind of format: groups of 32 and of 16 columns, with minima and without. With axes heads
// turn by them.
func layer(kv ops.KVType, axes bool) *question {
	const heads, kvHeads = 4, 2
	embd, dim, t, bound := 96, 32, tensor.Q8_0, layerBound
	switch {
	case axes:
		bound = roundedBound
	case kv == ops.KVF16:
		embd, dim, t, bound = 256, 64, tensor.Q4_K, roundedBound
	case kv == ops.KVQ8:
		embd, dim, t, bound = 256, 64, tensor.Q6_K, roundedBound
	}
	wide, name := embd, "layer/"+kv.String()
	rotation := &ops.RoPETable{NRot: 24, Base: 10000, Scale: 1, Magnitude: 1}
	if axes {
		name, rotation = name+"/axes", axesOf(24)
	}
	q := ask(name, []column{plain(embd)}, func(b *ops.Builder, r *rand.Rand, in []ops.View) ops.View {
		table := b.Table(rotation)
		norm := func(n, group int, x ops.View) ops.View {
			return b.RMSNorm("norm", vector(b, r, n, 1, 0.5, 1.5), 1e-6, group, x)
		}
		product := func(rows int, x ops.View) ops.View {
			return b.MatMul("y", matrix(b, r, t, x.Width, rows, 1), vector(b, r, rows, 1, -1, 1), x)
		}
		x := norm(embd, 0, in[0])
		q, k, v := product(heads*dim, x), product(kvHeads*dim, x), product(kvHeads*dim, x)
		q = b.RoPE(table, dim, true, norm(dim, dim, q))
		k = b.RoPE(table, dim, true, norm(dim, dim, k))
		a := &ops.Attention{Heads: heads, Scale: 0.2, Q: q, Out: b.Buffer("attention", heads*dim)}
		a.Cache = b.Cache(ops.Cache{Name: "kv", KVHeads: kvHeads, KeyDim: dim, ValueDim: dim})
		b.Add(&ops.KVStore{Cache: a.Cache, K: k, V: v})
		b.Add(a)
		x = b.Sum("residual", norm(embd, 0, product(embd, a.Out)), in[0])
		n := norm(embd, 0, x)
		gate, up := product(wide, n), product(wide, n)
		return b.Sum("residual", norm(embd, 0, product(embd, b.GLU("glu", ops.GELU, gate, up))), x)
	})
	q.kv, q.batches, q.bound = kv, chunkful(), bound
	return q
}

// experts route each row to some matrices of a stack.
func experts(route ops.Route, t tensor.Type) *question {
	const n, in, hidden, out = 8, 256, 256, 40
	names := map[ops.RouteKind]string{ops.RouteSoftmax: "softmax", ops.RouteSigmoid: "sigmoid", ops.RouteRaw: "raw", ops.RouteSqrtSoftplus: "sqrtsoftplus", ops.RouteRawSigmoid: "rawsigmoid"}
	q := ask("experts/"+names[route.Kind]+"/"+t.String(), []column{{n, -3, 3}, plain(in)}, func(b *ops.Builder, r *rand.Rand, x []ops.View) ops.View {
		k := route.TopK
		if route.Kind == ops.RouteSigmoid {
			route.Bias = vector(b, r, n, 1, -0.2, 0.2)
		}
		route.In, route.IDs, route.Weights = x[0], b.Indices("ids", k), b.Buffer("weights", k)
		b.Add(&route)
		first, second := b.Buffer("first", k*hidden), b.Buffer("second", k*out)
		b.Add(&ops.ExpertMatMul{W: matrix(b, r, t, in, hidden, n), Bias: vector(b, r, hidden, n, -1, 1), IDs: route.IDs, In: x[1], Out: first})
		b.Add(&ops.ExpertMatMul{W: matrix(b, r, t, hidden, out, n), IDs: route.IDs, In: first, Out: second})
		sum := b.Buffer("sum", out)
		b.Add(&ops.ExpertSum{IDs: route.IDs, Weights: route.Weights, PerExpert: vector(b, r, n, 1, 0.5, 1.5), In: second, Out: sum})
		return sum
	})
	q.bound = chainBound
	return q
}

func convolution() *question {
	const n = 48
	return ask("shortconv", []column{plain(n)}, func(b *ops.Builder, r *rand.Rand, in []ops.View) ops.View {
		out := b.Buffer("out", n)
		b.Add(&ops.ShortConv{W: vector(b, r, 4, n, -1, 1), Bias: vector(b, r, n, 1, -1, 1), Act: ops.SiLU, State: b.State(ops.State{Name: "conv", Floats: 3 * n}), In: in[0], Out: out})
		return out
	})
}

func mamba1() *question {
	const n, channels = 16, 40
	return ask("mamba1", []column{plain(channels), {channels, 0.001, 1}, plain(n), plain(n)}, func(b *ops.Builder, r *rand.Rand, in []ops.View) ops.View {
		out := b.Buffer("out", channels)
		b.Add(&ops.Mamba1{A: vector(b, r, n, channels, -4, -0.05), D: vector(b, r, channels, 1, -1, 1), N: n, State: b.State(ops.State{Name: "scan", Floats: channels * n}),
			X: in[0], Dt: in[1], B: in[2], C: in[3], Out: out})
		return out
	})
}

func mamba2() *question {
	const heads, groups, p, n = 4, 2, 16, 32
	return ask("mamba2", []column{plain(heads * p), {heads, 0.001, 1}, plain(groups * n), plain(groups * n)}, func(b *ops.Builder, r *rand.Rand, in []ops.View) ops.View {
		out := b.Buffer("out", heads*p)
		b.Add(&ops.Mamba2{A: vector(b, r, heads, 1, -4, -0.05), D: vector(b, r, heads, 1, -1, 1), Heads: heads, Groups: groups, N: n,
			State: b.State(ops.State{Name: "scan", Floats: heads * p * n}), X: in[0], Dt: in[1], B: in[2], C: in[3], Out: out})
		return out
	})
}

func delta() *question {
	const kHeads, vHeads, dim = 2, 4, 32
	key := column{kHeads * dim, -0.2, 0.2} // about as long as normalised keys are
	return ask("gateddelta", []column{plain(kHeads * dim), key, plain(vHeads * dim), {vHeads, -2, 0}, {vHeads, 0, 1}}, func(b *ops.Builder, r *rand.Rand, in []ops.View) ops.View {
		out := b.Buffer("out", vHeads*dim)
		b.Add(&ops.GatedDelta{KHeads: kHeads, VHeads: vHeads, Dim: dim, Scale: 0.18, State: b.State(ops.State{Name: "delta", Floats: vHeads * dim * dim}),
			Q: in[0], K: in[1], V: in[2], Gate: in[3], Beta: in[4], Out: out})
		return out
	})
}

// adapter updates a product, a lookup and the products of experts; some rows have no
// strength.
func adapter() *question {
	const in, out, rank, n, k = 96, 40, 8, 4, 2
	return ask("lowrank", []column{plain(in), {n, -3, 3}}, func(b *ops.Builder, r *rand.Rand, x []ops.View) ops.View {
		b.Plan.Adapters = 1
		y := b.MatMul("y", matrix(b, r, tensor.F16, in, out, 1), nil, x[0])
		b.Add(&ops.LowRank{Factor: 2, A: matrix(b, r, tensor.F32, in, rank, 1), B: matrix(b, r, tensor.F16, rank, out, 1), In: x[0], Out: y})
		looked := b.Embed(matrix(b, r, tensor.F16, out, out, 1), 1)
		b.Add(&ops.LowRank{Factor: 1, ByToken: true, A: matrix(b, r, tensor.F32, rank, out, 1), B: matrix(b, r, tensor.F32, rank, out, 1), Out: looked})
		route := &ops.Route{TopK: k, In: x[1], IDs: b.Indices("ids", k), Weights: b.Buffer("weights", k)}
		b.Add(route)
		z := b.Buffer("z", k*out)
		b.Add(&ops.ExpertMatMul{W: matrix(b, r, tensor.F16, in, out, n), IDs: route.IDs, In: x[0], Out: z})
		b.Add(&ops.LowRank{Factor: 0.5, A: matrix(b, r, tensor.F32, in, rank, n), B: matrix(b, r, tensor.F32, rank, out, n), IDs: route.IDs, In: x[0], Out: z})
		sum := b.Buffer("sum", out)
		b.Add(&ops.ExpertSum{IDs: route.IDs, Weights: route.Weights, In: z, Out: sum})
		return b.Sum("all", b.Sum("dense", y, looked), sum)
	})
}

// gather puts units of other rows together: a copy in another order, and means.
func gather() *question {
	const n, unit, terms = 48, 16, 2
	return ask("gather", []column{plain(n)}, func(b *ops.Builder, r *rand.Rand, in []ops.View) ops.View {
		list := func(name string, per int) int { return b.List(ops.List{Name: name, Per: per, Units: n / unit}) }
		turned, means := b.Buffer("turned", n), b.Buffer("means", n)
		b.Add(&ops.Gather{List: list("order", n/unit), Unit: unit, Terms: 1, In: in[0], Out: turned})
		b.Add(&ops.Gather{List: list("neighbours", n/unit*terms), Unit: unit, Terms: terms, Mean: true, In: turned, Out: means})
		return b.Sum("sum", turned, means)
	})
}
