package opstest

import (
	"fmt"
	"math"
	"slices"

	"ganglion/gpu/ops"
)

// outputs holds the rows read back: [sequence][position] vectors.
type outputs [][][]float32

// columns cuts a column range out of every row.
func (o outputs) columns(at, width int) outputs {
	cut := make(outputs, len(o))
	for s := range o {
		for _, row := range o[s] {
			cut[s] = append(cut[s], row[at:at+width])
		}
	}
	return cut
}

// piece is a range of positions of one sequence; a step is the pieces of one batch.
type piece struct{ seq, from, to int }

type schedule struct {
	name  string
	steps [][]piece
}

// schedulesOf gives the ways in which sequences are cut into batches; the first is
// all rows at once.
func schedulesOf(seqs []int) []schedule {
	var whole []piece
	var single [][]piece
	for s, n := range seqs {
		whole = append(whole, piece{s, 0, n})
		for pos := range n {
			single = append(single, []piece{{s, pos, pos + 1}})
		}
	}
	return []schedule{
		{"whole", [][]piece{whole}},
		{"one by one", single},
		{"pieces of 7 beside others", pieces(seqs, 7)},
		{"pieces of 64 beside others", pieces(seqs, 64)},
	}
}

// wholeSpans cuts sequences at random, but never before a row that an earlier one looks at.
func (c *testCase) wholeSpans() []schedule {
	var whole []piece
	var single, beside [][]piece
	for s, n := range c.seqs {
		whole = append(whole, piece{s, 0, n})
		from, until := 0, 0
		for pos := range n {
			for _, span := range c.spans(s, pos) {
				until = max(until, int(span.Until))
			}
			if until <= pos+1 {
				single = append(single, []piece{{s, from, pos + 1}})
				from = pos + 1
			}
		}
	}
	// The same pieces by two sequences at a time where there are two.
	for at := 0; at < len(single); {
		step := single[at]
		if next := at + 1; next < len(single) && single[next][0].seq != step[0].seq {
			step = []piece{single[next][0], step[0]}
			at++
		}
		beside = append(beside, step)
		at++
	}
	return []schedule{{"whole", [][]piece{whole}}, {"as cut as may be", single}, {"pieces beside others", beside}}
}

// pieces cuts every sequence into pieces of n; each batch has the next piece of every
// sequence that is not done, the last sequence first.
func pieces(seqs []int, n int) [][]piece {
	var steps [][]piece
	for from := 0; from < slices.Max(seqs); from += n {
		var step []piece
		for s := range slices.Backward(seqs) {
			if from < seqs[s] {
				step = append(step, piece{s, from, min(from+n, seqs[s])})
			}
		}
		steps = append(steps, step)
	}
	return steps
}

// feed is one way of running sequences through a plan.
type feed struct {
	plan     *ops.Plan
	numerics ops.Numerics
	kv       ops.KVType
	threads  int
	schedule schedule
	row      func(seq, pos int) []float32 // the row of Batch.Embeds, where token is nil
	token    func(seq, pos int) int32
	scales   func(seq, pos int) []float32 // strengths of the adapters of a row; nil: there are none
	rotary   func(seq, pos int) [ops.Axes]int32
	spans    func(seq, pos int) []ops.Span
}

// options are as tight as the schedule allows, so that ring caches wrap.
func (f *feed) options() ops.Options {
	o := ops.Options{Numerics: f.numerics, KV: f.kv, Threads: f.threads}
	for _, step := range f.schedule.steps {
		rows := 0
		for _, p := range step {
			rows += p.to - p.from
			o.Context = max(o.Context, p.to)
			o.Slots = max(o.Slots, p.seq+2)
		}
		o.MaxRows = max(o.MaxRows, rows)
	}
	return o
}

// run loads the plan and runs the schedule.
func (f *feed) run(b ops.Backend) (outputs, error) {
	o := f.options()
	prog, done, err := open(b, f.plan, o)
	if err != nil {
		return nil, err
	}
	defer done()
	var out outputs
	for _, step := range f.schedule.steps {
		rows, err := f.step(prog, o, step)
		if err != nil {
			return nil, err
		}
		for _, p := range step {
			for len(out) <= p.seq {
				out = append(out, nil)
			}
			out[p.seq] = append(out[p.seq], rows[:p.to-p.from]...)
			rows = rows[p.to-p.from:]
		}
	}
	return out, nil
}

// step runs one batch and copies its rows.
func (f *feed) step(prog ops.Program, o ops.Options, step []piece) ([][]float32, error) {
	var b ops.Batch
	for _, p := range step {
		for pos := p.from; pos < p.to; pos++ {
			if f.rotary != nil {
				axes := f.rotary(p.seq, pos)
				b.Rotary = append(b.Rotary, axes[:]...)
			}
			if f.spans != nil {
				b.Spans = append(b.Spans, f.spans(p.seq, pos)...)
			}
			if f.scales != nil {
				b.Scales = append(b.Scales, f.scales(p.seq, pos)...)
			}
			// Slots are given from the end, so that slot and sequence differ.
			if f.token != nil {
				appendRow(&b, f.token(p.seq, pos), pos, o.Slots-1-p.seq)
				continue
			}
			appendRow(&b, -1, pos, o.Slots-1-p.seq)
			b.Embeds = append(b.Embeds, f.row(p.seq, pos)...)
		}
	}
	return runRows(prog, &b)
}

// appendRow adds a row of which the whole output is wanted.
func appendRow(b *ops.Batch, token int32, pos, slot int) {
	b.Outs = append(b.Outs, int32(len(b.Tokens)))
	b.Want = append(b.Want, ops.Want{Kind: ops.WantRow})
	b.Tokens = append(b.Tokens, token)
	b.Pos = append(b.Pos, int32(pos))
	b.Slot = append(b.Slot, int32(slot))
}

// runRows runs a batch and copies the rows that came back. A bad head is an error.
func runRows(prog ops.Program, b *ops.Batch) ([][]float32, error) {
	var r ops.Result
	if err := prog.Run(b, &r); err != nil {
		return nil, fmt.Errorf("run: %w", err)
	}
	if len(r.Heads) != len(b.Outs) {
		return nil, fmt.Errorf("run: %d heads for %d outputs", len(r.Heads), len(b.Outs))
	}
	var rows [][]float32
	for i, h := range r.Heads {
		if h.Err != nil {
			return nil, fmt.Errorf("run: output %d: %w", i, h.Err)
		}
		rows = append(rows, slices.Clone(h.Row))
	}
	return rows, nil
}

// sameBits reports the first element whose bits differ.
func sameBits(got, want outputs) error {
	for s := range want {
		for pos, row := range want[s] {
			if len(got[s][pos]) != len(row) {
				return fmt.Errorf("sequence %d, position %d: %d columns, want %d", s, pos, len(got[s][pos]), len(row))
			}
			for i, w := range row {
				if g := got[s][pos][i]; math.Float32bits(g) != math.Float32bits(w) {
					return fmt.Errorf("sequence %d, position %d, column %d: got %v (%08x), want %v (%08x)",
						s, pos, i, g, math.Float32bits(g), w, math.Float32bits(w))
				}
			}
		}
	}
	return nil
}

// once loads a plan, runs one batch and copies its rows.
func once(b ops.Backend, p *ops.Plan, o ops.Options, batch *ops.Batch) ([][]float32, error) {
	prog, done, err := open(b, p, o)
	if err != nil {
		return nil, err
	}
	defer done()
	return runRows(prog, batch)
}

// open loads a plan and compiles it for the largest batch; done closes both.
func open(b ops.Backend, p *ops.Plan, o ops.Options) (prog ops.Program, done func(), err error) {
	rt, err := Load(b, p, o)
	if err != nil {
		return nil, nil, err
	}
	prog, err = rt.Compile(ops.Shape{Rows: o.MaxRows, Outs: o.MaxRows})
	if err != nil {
		rt.Close()
		return nil, nil, fmt.Errorf("compile: %w", err)
	}
	return prog, func() { prog.Close(); rt.Close() }, nil
}
