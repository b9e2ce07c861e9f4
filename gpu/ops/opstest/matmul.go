package opstest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"

	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

// rowCounts are the lengths of the sequences of a case without state: batches of 1,
// 2, 7, 33 rows and of all of them come from the schedules.
var rowCounts = []int{33, 2, 1}

// matMulCases multiply with every weight type, in shapes whose columns and rows fit
// no vector width where the type's blocks allow it.
func matMulCases() []testCase {
	var cases []testCase
	for _, t := range tensor.Types() {
		for i, rows := range []int{1, 33, 7} {
			cols := (i + 1) * t.BlockSize()
			if t.BlockSize() == 1 {
				cols = []int{1, 37, 515}[i]
			}
			cases = append(cases, matMulCase(t, cols, rows, i == 1, rowCounts))
		}
		cases = append(cases, matMulCase(t, 2*max(t.BlockSize(), 32), 130, true, []int{2}))
	}
	return cases
}

// checkLarge uses a matrix of the size of gemma3 270M's (178 MB, above what many
// devices bind at once) as table and as head. Its rows repeat with a prime period, so
// that no window of a round number of rows looks like another.
func checkLarge(b ops.Backend) error {
	const cols, rows, period = 640, 262144, 1021
	w := quantised(random("large"), tensor.Q8_0, cols, period, 1)
	m := newMatrix(w)
	tile := w.Data
	for len(w.Data) < rows*len(tile)/period {
		w.Data = append(w.Data, tile...)
	}
	w.Rows, w.Data = rows, w.Data[:rows*len(tile)/period]
	p := ops.NewBuilder("large")
	logits := p.MatMul("logits", p.Weight(w), nil, p.Outputs(p.Embed(w, 1)))
	p.Plan.Vocab, p.Plan.Embed, p.Plan.Context, p.Plan.Logits = rows, cols, 2, logits
	tokens := []int32{period - 1, rows - 1}
	for _, mode := range modes(b) {
		o := ops.Options{Slots: 1, Context: 2, MaxRows: 2, Threads: 2, Numerics: mode}
		got, err := once(b, p.Plan, o, tokenBatch(tokens, 0, 0))
		if err != nil {
			return err
		}
		tol := matMulTolerance(cols)
		var worst mismatch
		for i, t := range tokens {
			at := int(t) % period
			x := m.values[at*cols : (at+1)*cols]
			for c, g := range got[i] {
				want, mag, rough := m.dot(c%period, x)
				bound := tol.exact * mag
				if mode == ops.Fast {
					bound += tol.fast * rough
				}
				worst.add(0, i, c, float64(g), want, bound)
			}
		}
		if err := worst.err(); err != nil {
			return fmt.Errorf("%s: %w", mode, err)
		}
	}
	return nil
}

func matMulCase(t tensor.Type, cols, rows int, bias bool, seqs []int) testCase {
	name := fmt.Sprintf("matmul/%s/%dx%d", t, rows, cols)
	// Weights are made when the check runs: making those of all types takes a second.
	weights := sync.OnceValue(func() [2]*ops.Weight {
		r := random(name + "/weights")
		w := [2]*ops.Weight{quantised(r, t, cols, rows, 1)}
		if bias {
			w[1] = normal(r, "bias", rows, 1, 1)
		}
		return w
	})
	return testCase{
		name: name, kernels: "products of " + t.String(), ins: []input{{width: cols}}, out: rows, seqs: seqs, tol: matMulTolerance(cols),
		build: func(p *ops.Builder, in []ops.View, out ops.View) {
			w, b := weights()[0], weights()[1]
			if b != nil {
				p.Weight(b)
			}
			p.Add(&ops.MatMul{W: p.Weight(w), Bias: b, In: in[0], Out: out})
		},
		oracle: func(s sequence) []expected {
			m, shift := newMatrix(weights()[0]), wide(weights()[1])
			return each(s, rows, func(pos int, e expected) expected {
				e.fastMag = make([]float64, rows)
				for c := range rows {
					e.want[c], e.mag[c], e.fastMag[c] = m.dot(c, s.in[0][pos])
				}
				for c, v := range shift {
					e.want[c] += v
					e.mag[c] += math.Abs(v)
				}
				return e
			})
		},
	}
}

// each makes the expected outputs of all positions.
func each(s sequence, width int, f func(pos int, e expected) expected) []expected {
	out := make([]expected, s.len())
	for pos := range out {
		out[pos] = f(pos, newExpected(width))
	}
	return out
}

// matrix is a weight in float64: rows of cols values.
type matrix struct {
	values []float64
	cols   int
	// sizes are |d·q| + |m| of each value where the weight is whole numbers in groups,
	// which exact mode adds up apart; nil for the values' own.
	sizes []float64
}

// newMatrix is a weight that operations multiply with.
func newMatrix(w *ops.Weight) matrix {
	m := matrix{values: wide(w)}
	if w == nil {
		return m
	}
	m.cols = w.Cols
	if w.Type.Group() == 0 {
		return m
	}
	var row ops.CodeRow
	bytes := len(w.Data) / (len(m.values) / w.Cols)
	for at := 0; at < len(w.Data); at += bytes {
		if err := row.Decode(w.Type, w.Cols, w.Data[at:at+bytes]); err != nil {
			panic("opstest: " + err.Error()) // made by this package
		}
		for i, q := range row.Codes {
			size := math.Abs(float64(row.Scales[i/row.Group]) * float64(q))
			if len(row.Mins) > 0 {
				size += math.Abs(float64(row.Mins[i/row.Group]))
			}
			m.sizes = append(m.sizes, size)
		}
	}
	return m
}

// dot multiplies row i by x. mag is the magnitude of its terms, rough √Σw²·max|x|.
func (m matrix) dot(i int, x []float64) (sum, mag, rough float64) {
	var squares, largest float64
	for c, w := range m.values[i*m.cols : (i+1)*m.cols] {
		sum += w * x[c]
		squares += w * w
		largest = math.Max(largest, math.Abs(x[c]))
	}
	return sum, m.mag(i, x), math.Sqrt(squares) * largest
}

// mag is the magnitude of the terms of row i times x: Σ|w·x|, and what rounding x to
// whole numbers costs, in the unit of a dot product's tolerance.
func (m matrix) mag(i int, x []float64) (mag float64) {
	row := m.values[i*m.cols : (i+1)*m.cols]
	if m.sizes == nil {
		for c, w := range row {
			mag += math.Abs(w * x[c])
		}
		return mag
	}
	for from := 0; from < m.cols; from += ops.WholeBlock {
		var weights, largest float64
		for c := from; c < from+ops.WholeBlock; c++ {
			mag += m.sizes[i*m.cols+c] * math.Abs(x[c])
			weights += math.Abs(row[c])
			largest = math.Max(largest, math.Abs(x[c]))
		}
		mag += weights * largest * wholeRounding / laneRoundings(m.cols)
	}
	return mag
}

// embedChecks look tokens up in tables of every type, by token and by position.
func embedChecks() []check {
	var checks []check
	for _, t := range tensor.Types() {
		for _, byPosition := range []bool{false, true} {
			name := fmt.Sprintf("embed/%s/token", t)
			if byPosition {
				name = fmt.Sprintf("embed/%s/position", t)
			}
			checks = append(checks, check{name: name, run: func(b ops.Backend) error { return checkEmbed(b, name, t, byPosition) }})
		}
	}
	checks = append(checks, check{name: "embed/per-layer-table", run: checkEmbedOtherWidth})
	for _, perOutput := range []bool{false, true} {
		checks = append(checks, check{name: fmt.Sprintf("deepstack/outputs=%v", perOutput), run: func(b ops.Backend) error { return checkDeepstack(b, perOutput) }})
	}
	return checks
}

// checkEmbed looks tokens up, the first and the last among them.
func checkEmbed(b ops.Backend, name string, t tensor.Type, byPosition bool) error {
	const scale = 1.5
	r := random(name)
	n := max(t.BlockSize(), 32) // columns, and rows of the table
	w := quantised(r, t, n, n, 1)
	p := ops.NewBuilder(name)
	emb := p.Buffer("embed", n)
	p.Add(&ops.Embed{Table: p.Weight(w), Scale: scale, ByPosition: byPosition, Out: emb})
	out := p.Outputs(emb)
	p.Plan.Vocab, p.Plan.Embed, p.Plan.Context, p.Plan.Logits = n, n, n, out

	var batch ops.Batch
	for pos, token := range append(randomTokens(r, 20, n), 0, int32(n-1)) {
		appendRow(&batch, token, pos, 0)
	}
	rows := batch.Tokens
	if byPosition {
		rows = batch.Pos
	}
	table := wide(w)
	for _, mode := range modes(b) {
		o := ops.Options{Slots: 1, Context: n, MaxRows: len(rows), Threads: 1, Numerics: mode}
		got, err := once(b, p.Plan, o, &batch)
		if err != nil {
			return err
		}
		var worst mismatch
		for i, row := range got {
			for c, g := range row {
				want := table[int(rows[i])*n+c] * scale
				worst.add(0, i, c, float64(g), want, elementwiseTolerance().of(mode)*math.Abs(want))
			}
		}
		if err := worst.err(); err != nil {
			return fmt.Errorf("%s: %w", mode, err)
		}
	}
	return nil
}

// checkEmbedOtherWidth feeds an embedding row to a plan with a second table of
// another width: it gives its row 0.
func checkEmbedOtherWidth(b ops.Backend) error {
	r := random("embed/per-layer-table")
	second := normal(r, "second", 5, 5, 1)
	p := Plan("embed", 7, func(p *ops.Builder, _ ops.View) ops.View {
		out := p.Buffer("second", 5)
		p.Add(&ops.Embed{Table: p.Weight(second), Scale: 2, Out: out})
		return out
	})
	var batch ops.Batch
	appendRow(&batch, -1, 0, 0)
	appendRow(&batch, 3, 1, 0)
	batch.Embeds = vector(r, 14, nil)
	got, err := once(b, p, ops.Options{Slots: 1, Context: 2, MaxRows: 2, Threads: 1}, &batch)
	if err != nil {
		return err
	}
	table := wide(second)
	for i, at := range []int{0, 3} {
		for c, g := range got[i] {
			if want := table[at*5+c] * 2; math.Abs(float64(g)-want) > math.Abs(want)*half {
				return fmt.Errorf("row %d: column %d: got %v, want %v", i, c, g, want)
			}
		}
	}
	return nil
}

// checkDeepstack adds two slices of wide embeddings, beside rows of text, which keep
// their bits.
func checkDeepstack(b ops.Backend, perOutput bool) error {
	const width, rows = 37, 9
	r := random("deepstack")
	table := normal(r, "table", width, rows, 1)
	p := ops.NewBuilder("deepstack")
	x := p.Embed(p.Weight(table), -1)
	wide1 := p.Buffer("wide", width+3)
	p.Add(&ops.Deepstack{Slice: 1, In: x, Out: wide1.Cols(2, width)})
	x = wide1.Cols(2, width)
	if perOutput {
		x = p.Outputs(x)
	}
	p.Add(&ops.Deepstack{Slice: 2, In: x, Out: x})
	if !perOutput {
		x = p.Outputs(x)
	}
	p.Plan.Vocab, p.Plan.Tokens, p.Plan.Embed, p.Plan.Slices, p.Plan.Context, p.Plan.Logits = width, rows, width, 2, rows, x

	var batch ops.Batch
	for pos := range rows {
		appendRow(&batch, []int32{4, -1, -1, 0}[pos%4], pos, 0)
	}
	batch.Embeds = vector(r, 3*width*rows, nil)
	batch.Outs, batch.Want = []int32{0, 1, 2, 3, 6, 8}, batch.Want[:6]
	tokens := wide(table)
	for _, mode := range modes(b) {
		got, err := once(b, p.Plan, ops.Options{Slots: 1, Context: rows, MaxRows: rows, Threads: 2, Numerics: mode}, &batch)
		if err != nil {
			return err
		}
		for i, row := range batch.Outs {
			for c, g := range got[i] {
				want := float32(-tokens[4*width*int(1-row%4/3)+c]) // token 4 or 0
				if batch.Tokens[row] < 0 {
					e := batch.Embeds[3*width*int(row):]
					want = e[c] + e[width+c] + e[2*width+c]
				}
				if math.Float32bits(g) != math.Float32bits(want) {
					return fmt.Errorf("%s: row %d: column %d: got %v, want %v", mode, row, c, g, want)
				}
			}
		}
	}
	return nil
}

// modes are the numerics a backend has.
func modes(b ops.Backend) []ops.Numerics {
	if b.Caps().Exact {
		return []ops.Numerics{ops.Fast, ops.Exact}
	}
	return []ops.Numerics{ops.Fast}
}

// randomTokens draws n tokens.
func randomTokens(r *rand.Rand, n, vocab int) []int32 {
	t := make([]int32, n)
	for i := range t {
		t[i] = int32(r.IntN(vocab))
	}
	return t
}
