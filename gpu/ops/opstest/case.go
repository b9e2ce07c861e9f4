package opstest

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"

	"ganglion/gpu/ops"
	"ganglion/gpu/ops/ref"
)

// A testCase is one operation (or a store and the operation that reads it) with one
// shape. Its inputs are a table of vectors per sequence and position.
type testCase struct {
	name    string
	kernels string // see check
	ins     []input
	out     int   // width of the output
	inPlace []int // inputs that the output may be
	seqs    []int // lengths of the sequences, all from position 0
	kv      []ops.KVType
	tol     tolerance
	scales  func(seq, pos int) []float32       // strengths of the adapters of a row; nil: there are none
	rotary  func(seq, pos int) [ops.Axes]int32 // nil: none
	spans   func(seq, pos int) []ops.Span      // of a row, one for each of the plan's; nil: none

	// build adds the operation. It is called once per plan.
	build func(b *ops.Builder, in []ops.View, out ops.View)
	// oracle defines the outputs of one sequence in float64.
	oracle func(s sequence) []expected
}

// input is one operand of a case.
type input struct {
	width int
	draw  func(*rand.Rand) float32 // nil: normal
}

// sequence is the input of one sequence: in[operand][position] is a vector.
type sequence struct {
	index int
	in    [][][]float64
	kv    ops.KVType
}

func (s sequence) len() int { return len(s.in[0]) }

// expected is the output at one position: what it should be, the magnitude of the
// terms it is made of, and, where fast mode errs by another rule, that magnitude.
type expected struct {
	want, mag, fastMag []float64
}

func newExpected(n int) expected {
	return expected{want: make([]float64, n), mag: make([]float64, n)}
}

// layout says where the operands of a case lie.
type layout struct {
	name    string
	guard   float32 // what the columns between the operands hold
	gap     int     // columns between operands
	shared  bool    // the output lies in the inputs' buffer
	inPlace int     // the output is this input, -1 = it is not
	all     bool    // all columns of the shared buffer are read back
}

func (c *testCase) layouts() []layout {
	nan := float32(math.NaN())
	ls := []layout{
		{name: "apart", inPlace: -1},
		{name: "guarded", inPlace: -1, shared: true, gap: 3, guard: 12345.678, all: true},
		{name: "poisoned", inPlace: -1, shared: true, gap: 5, guard: nan},
	}
	for _, i := range c.inPlace {
		ls = append(ls, layout{name: fmt.Sprintf("in place of input %d", i), inPlace: i, gap: 1, guard: nan})
	}
	return ls
}

// placed is a case in a layout: its plan and where inputs and output stand.
type placed struct {
	layout
	plan  *ops.Plan
	inAt  []int // first column of each input in the embedding
	outAt int   // first column of the output in the row that is read back
}

// place builds the plan of a case: an Embed of the whole input row, the operation,
// and a Rows that reads back the output or, to see the guards, all columns.
func (c *testCase) place(l layout) placed {
	p := placed{layout: l}
	width := l.gap
	for _, in := range c.ins {
		p.inAt = append(p.inAt, width)
		width += in.width + l.gap
	}
	sharedAt := width
	if l.shared {
		width += c.out + l.gap
	}
	p.plan = Plan(c.name, width, func(b *ops.Builder, row ops.View) ops.View {
		var in []ops.View
		for i := range c.ins {
			in = append(in, row.Cols(p.inAt[i], c.ins[i].width))
		}
		var out ops.View
		switch {
		case l.inPlace >= 0:
			out = in[l.inPlace]
		case l.shared:
			out = row.Cols(sharedAt, c.out)
		default:
			out = b.Buffer("out", c.out)
		}
		c.build(b, in, out)
		if l.all {
			p.outAt = sharedAt
			return row
		}
		return out
	})
	return p
}

// Plan builds a plan around operations under test: build receives the view that
// holds the row of Batch.Embeds (width columns, token −1) and returns the view whose
// rows are read back as logits; it may have gone over to output rows already.
func Plan(name string, width int, build func(b *ops.Builder, row ops.View) ops.View) *ops.Plan {
	b := ops.NewBuilder(name)
	table := zeros(width)
	row := b.Embed(b.Weight(table), 1)
	out := build(b, row)
	if b.Plan.Buffers[out.Buf].Rows == ops.PerRow {
		out = b.Outputs(out)
	}
	b.Plan.Vocab, b.Plan.Embed, b.Plan.Context, b.Plan.Logits = out.Width, width, 1<<20, out
	table.Rows = out.Width
	table.Data = make([]byte, 2*out.Width*width)
	return b.Plan
}

// data is the random input of a case: [sequence][operand][position] vectors.
func (c *testCase) data() [][][][]float32 {
	r := random(c.name)
	all := make([][][][]float32, len(c.seqs))
	for s, n := range c.seqs {
		all[s] = make([][][]float32, len(c.ins))
		for i, in := range c.ins {
			all[s][i] = make([][]float32, n)
			for pos := range n {
				all[s][i][pos] = vector(r, in.width, in.draw)
			}
		}
	}
	return all
}

// random is a generator that depends on a case's name alone.
func random(name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(h.Sum64(), 1))
}

func vector(r *rand.Rand, n int, draw func(*rand.Rand) float32) []float32 {
	v := make([]float32, n)
	for i := range v {
		if draw == nil {
			v[i] = float32(r.NormFloat64())
		} else {
			v[i] = draw(r)
		}
	}
	return v
}

// embeds lays one position's operands out as a row of Batch.Embeds.
func (p *placed) embeds(data [][][]float32, pos int) []float32 {
	row := make([]float32, p.plan.Embed)
	for i := range row {
		row[i] = p.guard
	}
	for i, at := range p.inAt {
		copy(row[at:], data[i][pos])
	}
	return row
}

// check runs a case in all modes the backend has.
func (c *testCase) check(b ops.Backend) error {
	kinds := c.kv
	if kinds == nil {
		kinds = []ops.KVType{ops.KVF16}
	}
	data := c.data()
	var errs []error
	for _, kv := range kinds {
		want := c.expect(data, kv)
		for _, mode := range modes(b) {
			errs = append(errs, c.checkMode(b, mode, kv, data, want))
		}
	}
	return errors.Join(errs...)
}

// trial is one way of running a case.
type trial struct {
	layout
	schedule
	threads int
}

func (t trial) String() string {
	return fmt.Sprintf("%s, %s, %d threads", t.layout.name, t.schedule.name, t.threads)
}

// trials pair the layouts with the schedules, so that each occurs. The first is the
// plainest, which is compared with the oracle and with ref.
func (c *testCase) trials() []trial {
	layouts, schedules := c.layouts(), schedulesOf(c.seqs)
	if c.spans != nil {
		schedules = c.wholeSpans()
	}
	var ts []trial
	for i := range max(len(layouts), len(schedules)) {
		ts = append(ts, trial{layouts[i%len(layouts)], schedules[i%len(schedules)], 1 + i%2})
	}
	return ts
}

// checkMode compares the first trial with the oracle and with ref, and the others
// with the first.
func (c *testCase) checkMode(b ops.Backend, n ops.Numerics, kv ops.KVType, data [][][][]float32, want [][]expected) error {
	mode := fmt.Sprintf("%s, kv %s", n, kv)
	var first outputs
	for i, t := range c.trials() {
		p := c.place(t.layout)
		f := feed{plan: p.plan, numerics: n, kv: kv, threads: t.threads, schedule: t.schedule, scales: c.scales, rotary: c.rotary, spans: c.spans,
			row: func(s, pos int) []float32 { return p.embeds(data[s], pos) }}
		got, err := f.run(b)
		if err == nil {
			err = p.guards(got, data, c.out)
		}
		if err != nil {
			return fmt.Errorf("%s, %v: %w", mode, t, err)
		}
		got = got.columns(p.outAt, c.out)
		if i > 0 {
			if err := sameBits(got, first); err != nil {
				return fmt.Errorf("%s: %v differs from %v: %w", mode, t, c.trials()[0], err)
			}
			continue
		}
		first = got
		if err := c.compare(got, want, n); err != nil {
			return fmt.Errorf("%s, %v: %w", mode, t, err)
		}
		if n == ops.Exact {
			want, err := f.run(ref.New())
			if err != nil {
				return fmt.Errorf("ref: %w", err)
			}
			if err := sameBits(got, want.columns(p.outAt, c.out)); err != nil {
				return fmt.Errorf("%s, %v: differs from ref: %w", mode, t, err)
			}
		}
	}
	return nil
}

// guards reports columns outside the output that changed.
func (p *placed) guards(got outputs, data [][][][]float32, width int) error {
	if !p.all {
		return nil
	}
	for s := range got {
		for pos, row := range got[s] {
			before := p.embeds(data[s], pos)
			for i := range row {
				inside := i >= p.outAt && i < p.outAt+width
				if !inside && math.Float32bits(row[i]) != math.Float32bits(before[i]) {
					return fmt.Errorf("sequence %d, position %d: column %d outside the output [%d,%d) was %v and is %v",
						s, pos, i, p.outAt, p.outAt+width, before[i], row[i])
				}
			}
		}
	}
	return nil
}

// expect asks the oracle: [sequence][position].
func (c *testCase) expect(data [][][][]float32, kv ops.KVType) [][]expected {
	var want [][]expected
	for s := range data {
		seq := sequence{index: s, in: make([][][]float64, len(c.ins)), kv: kv}
		for i := range c.ins {
			for _, v := range data[s][i] {
				seq.in[i] = append(seq.in[i], widen(v))
			}
		}
		want = append(want, c.oracle(seq))
	}
	return want
}

// compare holds the outputs against the oracle's.
func (c *testCase) compare(got outputs, want [][]expected, n ops.Numerics) error {
	var worst mismatch
	for s := range want {
		for pos, e := range want[s] {
			for i, w := range e.want {
				bound := c.tol.of(n) * e.mag[i]
				if n == ops.Fast && e.fastMag != nil {
					bound = c.tol.exact*e.mag[i] + c.tol.fast*e.fastMag[i]
				}
				worst.add(s, pos, i, float64(got[s][pos][i]), w, bound)
			}
		}
	}
	return worst.err()
}

func widen(v []float32) []float64 {
	w := make([]float64, len(v))
	for i, x := range v {
		w[i] = float64(x)
	}
	return w
}
