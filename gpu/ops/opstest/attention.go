package opstest

import (
	"fmt"
	"math"
	"slices"

	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

// attentionShape is one configuration of attention.
type attentionShape struct {
	heads, kvHeads   int
	keyDim, valueDim int
	window           int // of the operation
	cacheWindow      int
	chunked          bool
	softcap, alibi   float32
	sinks            bool
	seqs             []int
	spans            string // what rows look at beside the past: "", "picture", "tower", "windows"
}

func (a attentionShape) name() string {
	n := fmt.Sprintf("attention/%dof%d/k%dv%d/window%dof%d", a.kvHeads, a.heads, a.keyDim, a.valueDim, a.window, a.cacheWindow)
	if a.chunked {
		n += "/chunked"
	}
	if a.softcap > 0 {
		n += fmt.Sprintf("/softcap%v", a.softcap)
	}
	if a.alibi > 0 {
		n += fmt.Sprintf("/alibi%v", a.alibi)
	}
	if a.sinks {
		n += "/sinks"
	}
	if a.spans != "" {
		n += "/" + a.spans
	}
	return fmt.Sprintf("%s/%d", n, a.seqs[0])
}

// kernels names what kernels of attention are compiled for: how many heads share keys, how
// wide they are and what is done to scores. Windows and spans are parameters.
func (a attentionShape) kernels() string {
	return fmt.Sprintf("attention of %d by %d and %d, %v %v %v", a.heads/a.kvHeads, a.keyDim, a.valueDim, a.softcap > 0, a.alibi > 0, a.sinks)
}

// span is what a row looks at: to the end of its picture, at all rows, or at its window
// of 12.
func (a attentionShape) span(seq, pos int) ops.Span {
	n := a.seqs[seq]
	switch a.spans {
	case "picture": // positions 4 to 29 of each 40
		if at := pos % 40; at >= 4 && at < 30 {
			return ops.Span{Until: int32(min(pos-at+30, n))}
		}
	case "tower":
		return ops.Span{Until: int32(n)}
	case "windows":
		return ops.Span{From: int32(pos / 12 * 12), Until: int32(min(pos/12*12+12, n))}
	}
	return ops.Span{}
}

// attentionCases store keys and values and attend to them. The options are as tight
// as the schedule allows, so that windowed caches wrap around many times.
func attentionCases() []testCase {
	short := []int{33, 9, 1}
	var cases []testCase
	for _, a := range []attentionShape{
		{heads: 4, kvHeads: 4, keyDim: 64, valueDim: 64, seqs: short},
		{heads: 4, kvHeads: 1, keyDim: 256, valueDim: 256, seqs: short},
		{heads: 6, kvHeads: 2, keyDim: 80, valueDim: 80, seqs: short},
		{heads: 8, kvHeads: 2, keyDim: 128, valueDim: 128, seqs: short},
		{heads: 3, kvHeads: 3, keyDim: 37, valueDim: 21, seqs: short}, // odd and unequal
		{heads: 4, kvHeads: 2, keyDim: 64, valueDim: 64, window: 5, cacheWindow: 5, seqs: short},
		{heads: 2, kvHeads: 1, keyDim: 64, valueDim: 64, window: 1, cacheWindow: 1, seqs: short},
		{heads: 2, kvHeads: 1, keyDim: 64, valueDim: 64, window: 8, cacheWindow: 0, seqs: short}, // shares a full cache
		{heads: 2, kvHeads: 1, keyDim: 64, valueDim: 64, window: 8, cacheWindow: 13, seqs: short},
		{heads: 2, kvHeads: 1, keyDim: 64, valueDim: 64, window: 8, cacheWindow: 8, chunked: true, seqs: short},
		{heads: 4, kvHeads: 2, keyDim: 64, valueDim: 64, softcap: 3, seqs: short},
		{heads: 6, kvHeads: 2, keyDim: 64, valueDim: 64, alibi: 8, seqs: short},
		{heads: 4, kvHeads: 2, keyDim: 8, valueDim: 8, sinks: true, window: 7, cacheWindow: 7, seqs: short},
		// Across the borders of the chunks of exact mode, and a window that is none.
		{heads: 2, kvHeads: 1, keyDim: 8, valueDim: 8, seqs: []int{290, 257, 1}},
		{heads: 2, kvHeads: 1, keyDim: 8, valueDim: 8, window: 260, cacheWindow: 260, sinks: true, seqs: []int{300, 3}},
		{heads: 1, kvHeads: 1, keyDim: 8, valueDim: 8, window: 100, cacheWindow: 100, seqs: []int{270, 20}},
		{heads: 2, kvHeads: 1, keyDim: 8, valueDim: 8, window: 100, cacheWindow: 100, chunked: true, seqs: []int{301, 20}},
		// Rows that look ahead.
		{heads: 4, kvHeads: 2, keyDim: 64, valueDim: 64, spans: "picture", seqs: []int{70, 9, 1}},
		{heads: 4, kvHeads: 4, keyDim: 72, valueDim: 72, spans: "tower", seqs: []int{49, 33}},
		{heads: 2, kvHeads: 2, keyDim: 64, valueDim: 64, spans: "windows", seqs: []int{50, 12}},
		{heads: 2, kvHeads: 1, keyDim: 64, valueDim: 64, window: 8, cacheWindow: 8, spans: "picture", seqs: []int{95, 31}},
		{heads: 2, kvHeads: 1, keyDim: 64, valueDim: 64, window: 8, cacheWindow: 8, chunked: true, softcap: 3, spans: "picture", seqs: []int{75, 31}},
		{heads: 2, kvHeads: 1, keyDim: 8, valueDim: 8, sinks: true, spans: "tower", seqs: []int{600, 3}},
		{heads: 2, kvHeads: 1, keyDim: 8, valueDim: 8, window: 100, cacheWindow: 100, spans: "tower", seqs: []int{520}},
		{heads: 1, kvHeads: 1, keyDim: 8, valueDim: 8, spans: "windows", seqs: []int{300}},
	} {
		cases = append(cases, attentionCase(a))
	}
	return cases
}

func attentionCase(a attentionShape) testCase {
	kw, vw := a.kvHeads*a.keyDim, a.kvHeads*a.valueDim
	scale := float32(1 / math.Sqrt(float64(a.keyDim)))
	var sinks *ops.Weight
	if a.sinks {
		sinks = normal(random(a.name()+"/sinks"), "sinks", a.heads, 1, 1)
	}
	var spans func(seq, pos int) []ops.Span
	if a.spans != "" { // the first column is heeded by nothing
		spans = func(seq, pos int) []ops.Span { return []ops.Span{{From: int32(pos)}, a.span(seq, pos)} }
	}
	return testCase{
		spans: spans,
		name:  a.name(), kernels: a.kernels(), ins: []input{{width: a.heads * a.keyDim}, {width: kw}, {width: vw}},
		out: a.heads * a.valueDim, seqs: a.seqs, kv: []ops.KVType{ops.KVF16, ops.KVF32, ops.KVQ8}, tol: attentionTolerance(a.keyDim),
		build: func(b *ops.Builder, in []ops.View, out ops.View) {
			if sinks != nil {
				b.Weight(sinks)
			}
			c := b.Cache(ops.Cache{Name: "kv", KVHeads: a.kvHeads, KeyDim: a.keyDim, ValueDim: a.valueDim, Window: a.cacheWindow})
			b.Add(&ops.KVStore{Cache: c, K: in[1], V: in[2]})
			heeded := 0
			if spans != nil {
				b.Plan.Spans, heeded = 2, 2
			}
			b.Add(&ops.Attention{Cache: c, Heads: a.heads, Span: heeded, Scale: scale, Window: a.window, Chunked: a.chunked, Softcap: a.softcap,
				Sinks: sinks, ALiBi: a.alibi, Q: in[0], Out: out})
		},
		oracle: func(s sequence) []expected {
			queries := s.in[0]
			if s.kv == ops.KVF16 {
				queries = stored(queries, a.keyDim, s.kv)
			}
			keys, values := stored(s.in[1], a.keyDim, s.kv), stored(s.in[2], a.valueDim, s.kv)
			return each(s, a.heads*a.valueDim, func(pos int, e expected) expected {
				if s.kv == ops.KVF16 {
					e.fastMag = make([]float64, len(e.mag))
				}
				for h := range a.heads {
					a.attend(h, pos, a.span(s.index, pos), queries[pos], keys, values, float64(scale), wide(sinks), s.kv, e)
				}
				return e
			})
		},
	}
}

// stored rounds vectors of heads to the type of the cache.
func stored(x [][]float64, head int, kv ops.KVType) [][]float64 {
	if kv == ops.KVF32 {
		return x
	}
	out := make([][]float64, len(x))
	for i, v := range x {
		if kv == ops.KVQ8 {
			for part := range slices.Chunk(v, head) {
				for block := range slices.Chunk(part, ops.KVBlock) {
					out[i] = append(out[i], storedBlock(block)...)
				}
			}
			continue
		}
		for _, e := range v {
			out[i] = append(out[i], asHalf(e))
		}
	}
	return out
}

// asHalf is the nearest half of a float32.
func asHalf(x float64) float64 { return float64(tensor.F16ToF32(tensor.F32ToF16(float32(x)))) }

// storedBlock rounds a block of q8_0 in float64: the scale is the largest magnitude
// through 127 as a half, and values are the nearest multiples of it. A product in
// float32 could fall on the other side of a tie; the data, which is fixed, has none so
// close.
func storedBlock(x []float64) []float64 {
	largest := 0.0
	for _, v := range x {
		largest = math.Max(largest, math.Abs(v))
	}
	out := make([]float64, len(x))
	d := float64(tensor.F16ToF32(tensor.F32ToF16(float32(largest / 127))))
	if d == 0 {
		return out
	}
	for i, v := range x {
		out[i] = math.Max(-127, math.Min(127, math.RoundToEven(v/d))) * d
	}
	return out
}

// attend is softmax(q·kᵀ·scale)·v of one head, with the whole row of probabilities at
// once.
func (a attentionShape) attend(head, pos int, span ops.Span, q []float64, keys, values [][]float64, scale float64, sinks []float64, kv ops.KVType, e expected) {
	q = q[head*a.keyDim : (head+1)*a.keyDim]
	kvHead := head * a.kvHeads / a.heads
	from := 0
	if a.window > 0 {
		from = max(0, pos-a.window+1)
	}
	if a.chunked {
		from = pos / a.window * a.window
	}
	from = max(from, int(span.From))
	scores := make([]float64, max(pos+1, int(span.Until))-from)
	steepness := 1.0 // how far an error of the scores is multiplied
	for i := range scores {
		k := keys[from+i][kvHead*a.keyDim : (kvHead+1)*a.keyDim]
		var size float64
		for d := range q {
			scores[i] += q[d] * k[d] * scale
			size += math.Abs(q[d] * k[d] * scale)
		}
		if c := float64(a.softcap); c > 0 {
			scores[i] = c * math.Tanh(scores[i]/c)
		}
		if a.alibi > 0 {
			bias := a.slope(head) * float64(pos-from-i)
			scores[i] -= bias
			size += bias
		}
		steepness = math.Max(steepness, 1+size)
	}
	var total float64
	for _, s := range scores {
		total += math.Exp(s)
	}
	if sinks != nil {
		total += math.Exp(sinks[head])
	}
	for i, s := range scores {
		p := math.Exp(s) / total
		for d := range a.valueDim {
			x := values[from+i][kvHead*a.valueDim+d]
			v := p * x
			e.want[head*a.valueDim+d] += v
			e.mag[head*a.valueDim+d] += math.Abs(v) * steepness
			if kv == ops.KVF16 {
				// Probabilities are halves, rounded one by one from float32.
				e.fastMag[head*a.valueDim+d] += math.Abs(v) * steepness
				e.mag[head*a.valueDim+d] += math.Max(p, smallestHalf) * math.Abs(x) * half / attentionTolerance(a.keyDim).exact
			}
		}
	}
}

// slope of ALiBi (arXiv:2108.12409): a geometric sequence for a power of two; other
// numbers of heads take every other slope of the next power for the heads beyond.
func (a attentionShape) slope(head int) float64 {
	n := math.Exp2(math.Floor(math.Log2(float64(a.heads))))
	if h := float64(head); h >= n {
		return math.Exp2(-float64(a.alibi) / (2 * n) * (2*(h-n) + 1))
	}
	return math.Exp2(-float64(a.alibi) / n * float64(head+1))
}

// checkSpanRows lets only some rows of a picture attend, which see to its end all the
// same.
func checkSpanRows(b ops.Backend) error {
	const dim, rows = 16, 30
	plan := func(perOutput bool) *ops.Plan {
		return Plan("span rows", 3*dim, func(b *ops.Builder, row ops.View) ops.View {
			b.Plan.Spans = 1
			c := b.Cache(ops.Cache{Name: "kv", KVHeads: 1, KeyDim: dim, ValueDim: dim})
			b.Add(&ops.KVStore{Cache: c, K: row.Cols(dim, dim), V: row.Cols(2*dim, dim)})
			q := row.Cols(0, dim)
			if perOutput {
				q = b.Outputs(q)
			}
			q = b.RoPE(b.Table(&ops.RoPETable{NRot: dim, Base: 100, Scale: 1, Magnitude: 1, Axes: []uint8{0, 1, 2, 0, 1, 2, 0, 1}}), dim, false, q)
			out := b.Buffer("out", dim)
			b.Add(&ops.Attention{Cache: c, Heads: 1, Scale: 0.25, Span: 1, Q: q, Out: out})
			return out
		})
	}
	r := random("span rows")
	var batch ops.Batch
	for i := range rows {
		appendRow(&batch, -1, i%20, i/20)
		batch.Embeds = append(batch.Embeds, vector(r, 3*dim, nil)...)
		batch.Spans = append(batch.Spans, ops.Span{Until: []int32{17, 10}[i/20]})
		batch.Rotary = append(batch.Rotary, int32(i%7), int32(i%5), int32(i%3))
	}
	batch.Outs = []int32{0, 13, 22}
	batch.Want = batch.Want[:len(batch.Outs)]
	return sameAsAllRows(b, plan, rows, &batch)
}

// checkPerOutput lets only the output rows rotate and attend, as the last layer of a
// model may: they must give the bits that they give among all rows.
func checkPerOutput(b ops.Backend) error {
	const heads, dim, rows = 2, 16, 30
	plan := func(perOutput bool) *ops.Plan {
		return Plan("per output", 4*dim, func(b *ops.Builder, row ops.View) ops.View {
			c := b.Cache(ops.Cache{Name: "kv", KVHeads: 1, KeyDim: dim, ValueDim: dim, Window: 9})
			b.Add(&ops.KVStore{Cache: c, K: row.Cols(2*dim, dim), V: row.Cols(3*dim, dim)})
			q := row.Cols(0, heads*dim)
			if perOutput {
				q = b.Outputs(q)
			}
			b.Add(&ops.PosScale{Floor: 4, Scale: 0.5, In: q, Out: q})
			q = b.RoPE(b.Table(&ops.RoPETable{NRot: dim, Base: 100, Scale: 1, Magnitude: 1}), dim, false, q)
			out := b.Buffer("out", heads*dim)
			b.Add(&ops.Attention{Cache: c, Heads: heads, Scale: 0.25, Window: 9, Q: q, Out: out})
			return out
		})
	}
	r := random("per output")
	var batch ops.Batch
	for i := range rows {
		appendRow(&batch, -1, i%20, i/20)
		batch.Embeds = append(batch.Embeds, vector(r, 4*dim, nil)...)
	}
	batch.Outs = []int32{0, 13, 19, 20, 29}
	batch.Want = batch.Want[:len(batch.Outs)]
	return sameAsAllRows(b, plan, rows, &batch)
}

// sameAsAllRows runs a batch of so many rows with a plan of the output rows alone and with
// one of all rows, which must give them the same bits.
func sameAsAllRows(b ops.Backend, plan func(perOutput bool) *ops.Plan, rows int, batch *ops.Batch) error {
	for _, mode := range modes(b) {
		o := ops.Options{Slots: 2, Context: 20, MaxRows: rows, Threads: 2, Numerics: mode}
		want, err := once(b, plan(false), o, batch)
		if err != nil {
			return err
		}
		got, err := once(b, plan(true), o, batch)
		if err != nil {
			return err
		}
		if err := sameBits(outputs{got}, outputs{want}); err != nil {
			return fmt.Errorf("%s: output rows differ from all rows: %w", mode, err)
		}
	}
	return nil
}
