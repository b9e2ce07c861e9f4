package opstest

import (
	"fmt"
	"math"
	"math/rand/v2"

	"ganglion/gpu/ops"
	"ganglion/gpu/tensor"
)

// lowRankShape is a row x that a weight was multiplied with, the product y, and the
// updates that two adapters of different rank add to it. Strengths differ from row to
// row and are often 0.
type lowRankShape struct {
	typ       tensor.Type
	cols, out int
	ranks     [2]int
	experts   int // 0: a plain matrix
	topK      int
	own       bool // an input per expert
}

func lowRankCases() []testCase {
	var cases []testCase
	for _, l := range []lowRankShape{
		{typ: tensor.F32, cols: 67, out: 33, ranks: [2]int{5, 1}},
		{typ: tensor.F32, cols: 1, out: 1, ranks: [2]int{1, 3}},
		{typ: tensor.F16, cols: 96, out: 300, ranks: [2]int{16, 8}},
		{typ: tensor.BF16, cols: 515, out: 70, ranks: [2]int{33, 64}},
		{typ: tensor.Q8_0, cols: 64, out: 41, ranks: [2]int{32, 64}},
		{typ: tensor.Q4_K, cols: 256, out: 19, ranks: [2]int{256, 256}},
		{typ: tensor.F32, cols: 35, out: 21, ranks: [2]int{4, 9}, experts: 6, topK: 3},
		{typ: tensor.F16, cols: 24, out: 17, ranks: [2]int{2, 5}, experts: 5, topK: 2, own: true},
	} {
		cases = append(cases, l.testCase())
	}
	return cases
}

func (l lowRankShape) String() string {
	s := fmt.Sprintf("lowrank/%v/%dx%d", l.typ, l.out, l.cols)
	if l.experts > 0 {
		s += fmt.Sprintf("/%dof%d", l.topK, l.experts)
	}
	return s
}

// factors are what the files of the two adapters say of their strength.
var factors = [2]float32{0.75, -1.5}

// scales are the strengths of the adapters at a position: one, both, or none of them.
func scales(seq, pos int) []float32 {
	s := []float32{0, 0}
	if pos%3 != 1 {
		s[0] = float32(1+pos%5) / 4
	}
	if seq != 1 && pos%4 > 1 {
		s[1] = float32(2-seq) / 2
	}
	return s
}

func (l lowRankShape) testCase() testCase {
	name := l.String()
	r := random(name + "/weights")
	k, stack := max(l.topK, 1), max(l.experts, 1)
	var a, b [2]*ops.Weight
	for i, rank := range l.ranks {
		a[i], b[i] = quantised(r, l.typ, l.cols, rank, stack), quantised(r, l.typ, rank, l.out, stack)
	}
	in := l.cols
	if l.own {
		in *= k
	}
	ins := []input{{width: in}, {width: k * l.out, draw: signedZeros}}
	if l.experts > 0 {
		ins = append(ins, input{width: l.experts, draw: uniform(-3, 3)})
	}
	rank := max(l.ranks[0], l.ranks[1])
	return testCase{
		name: name, ins: ins, out: k * l.out, inPlace: []int{1}, seqs: rowCounts, scales: scales,
		tol:    tolerance{(laneRoundings(l.cols) + laneRoundings(rank) + 4) * unit, fast8},
		build:  func(p *ops.Builder, in []ops.View, out ops.View) { l.build(p, a, b, in, out) },
		oracle: func(s sequence) []expected { return l.oracle(a, b, s) },
	}
}

// signedZeros draws normal values and zeros of both signs, whose sign an addition of
// nothing would lose.
func signedZeros(r *rand.Rand) float32 {
	if r.IntN(4) > 0 {
		return float32(r.NormFloat64())
	}
	return float32(math.Copysign(0, float64(r.IntN(2))-0.5))
}

func (l lowRankShape) build(p *ops.Builder, a, b [2]*ops.Weight, in []ops.View, out ops.View) {
	p.Plan.Adapters = len(a)
	if out != in[1] {
		p.Add(&ops.Unary{Act: ops.Identity, In: in[1], Out: out})
	}
	var ids ops.View
	if l.experts > 0 {
		ids = p.Indices("ids", l.topK)
		p.Add(&ops.Route{TopK: l.topK, In: in[2], IDs: ids, Weights: p.Buffer("weights", l.topK)})
	}
	for i := range a {
		p.Add(&ops.LowRank{Adapter: i, Factor: factors[i], A: p.Weight(a[i]), B: p.Weight(b[i]), IDs: ids, In: in[0], Out: out})
	}
}

func (l lowRankShape) oracle(a, b [2]*ops.Weight, s sequence) []expected {
	k := max(l.topK, 1)
	return each(s, k*l.out, func(pos int, e expected) expected {
		e.fastMag = make([]float64, k*l.out)
		for c, y := range s.in[1][pos] {
			e.want[c], e.mag[c] = y, math.Abs(y)
		}
		ids := []int{0}
		if l.experts > 0 {
			ids = moeShape{experts: l.experts, route: ops.Route{TopK: k}}.best(s.in[2][pos])
		}
		for i, strength := range scales(s.index, pos) {
			if strength == 0 {
				continue
			}
			for j, id := range ids {
				x := s.in[0][pos]
				if l.own {
					x = x[j*l.cols : (j+1)*l.cols]
				}
				l.add(a[i], b[i], id, float64(strength)*float64(factors[i]), x, e, j*l.out)
			}
		}
		return e
	})
}

// add adds s·B·A·x of one matrix of the stack to the columns from at on.
func (l lowRankShape) add(a, b *ops.Weight, id int, s float64, x []float64, e expected, at int) {
	mid, mag, rough := multiply(matrix{values: wide(a), cols: a.Cols}, id*a.Rows, a.Rows, x)
	y, mag, rough := multiplyRough(matrix{values: wide(b), cols: b.Cols}, id*b.Rows, b.Rows, mid, mag, rough)
	for c := range y {
		e.want[at+c] += s * y[c]
		e.mag[at+c] += math.Abs(s) * mag[c]
		e.fastMag[at+c] += math.Abs(s) * rough[c]
	}
}

func lowRankChecks() []check {
	return []check{{name: "lowrank/token", run: checkLowRankByToken}, {name: "lowrank/untouched", run: checkUntouched}}
}

// checkLowRankByToken adds to rows of a table; rows that are no token stay.
func checkLowRankByToken(b ops.Backend) error {
	const vocab, width, rank, scale = 45, 45, 5, 1.5
	r := random("lowrank/token")
	table, a, up := normal(r, "table", width, vocab, 1), quantised(r, tensor.F16, rank, vocab, 1), normal(r, "b", rank, width, 1)
	p := ops.NewBuilder("lowrank/token")
	x := p.Embed(p.Weight(table), scale)
	p.Plan.Adapters = 2
	p.Add(&ops.LowRank{Adapter: 1, Factor: 0.5 * scale, ByToken: true, A: p.Weight(a), B: p.Weight(up), Out: x})
	out := p.Outputs(x)
	p.Plan.Vocab, p.Plan.Embed, p.Plan.Context, p.Plan.Logits = width, width, 64, out

	var batch ops.Batch
	for pos, token := range append(randomTokens(r, 20, vocab), 0, vocab-1, -1, 5) {
		appendRow(&batch, token, pos, 0)
		batch.Scales = append(batch.Scales, 7, []float32{0, 1, 2.5}[pos%3])
		batch.Embeds = append(batch.Embeds, vector(r, width, nil)...)
	}
	rows, av, bv := wide(table), matrix{values: wide(a), cols: rank}, matrix{values: wide(up), cols: rank}
	for _, mode := range modes(b) {
		o := ops.Options{Slots: 1, Context: 64, MaxRows: len(batch.Tokens), Threads: 2, Numerics: mode}
		got, err := once(b, p.Plan, o, &batch)
		if err != nil {
			return err
		}
		var worst mismatch
		for i, row := range got {
			token, s := int(batch.Tokens[i]), float64(batch.Scales[2*i+1])*0.5*scale
			for c, g := range row {
				want, mag := float64(batch.Embeds[i*width+c]), 0.0
				if token >= 0 {
					sum, terms, _ := bv.dot(c, av.values[token*rank:(token+1)*rank])
					base := rows[token*width+c] * scale
					want, mag = base+s*sum, math.Abs(base)+math.Abs(s)*terms
				}
				worst.add(0, i, c, float64(g), want, matMulTolerance(rank).exact*mag)
			}
		}
		if err := worst.err(); err != nil {
			return fmt.Errorf("%s: %w", mode, err)
		}
	}
	return nil
}

// checkUntouched runs rows without strength, with no strengths given at all and beside
// rows that have one: they keep their very bits.
func checkUntouched(b ops.Backend) error {
	c := lowRankShape{typ: tensor.F32, cols: 20, out: 31, ranks: [2]int{4, 6}}.testCase()
	p := c.place(layout{inPlace: 1})
	data := c.data()
	for name, scales := range map[string]func(seq, pos int) []float32{
		"none given": nil,
		"all 0":      func(int, int) []float32 { return []float32{0, 0} },
		"beside": func(_, pos int) []float32 {
			return []float32{0, float32(pos % 2)}
		},
	} {
		for _, mode := range modes(b) {
			f := feed{plan: p.plan, numerics: mode, threads: 2, schedule: schedulesOf(c.seqs)[0], scales: scales,
				row: func(s, pos int) []float32 { return p.embeds(data[s], pos) }}
			got, err := f.run(b)
			if err != nil {
				return fmt.Errorf("%s, %s: %w", name, mode, err)
			}
			for s := range got {
				for pos, row := range got[s] {
					if name == "beside" && pos%2 == 1 {
						continue
					}
					if err := sameBits(outputs{{row}}, outputs{{data[s][1][pos]}}); err != nil {
						return fmt.Errorf("%s, %s: sequence %d, row %d has no strength and changed: %w", name, mode, s, pos, err)
					}
				}
			}
		}
	}
	return nil
}
