package pipeline_test

import (
	"errors"
	"testing"
	"time"

	"ganglion/plugins/abi"
	"ganglion/plugins/pipeline"
	"ganglion/plugins/pipeline/pipelinetest"
	"ganglion/plugins/rowstats"
	"ganglion/plugins/sampling"
)

const vocab = 100

// text is a sequence that the harness makes as the appliance does.
type text struct {
	*pipeline.Pipeline
	chain   *sampling.Chain
	scratch sampling.Scratch
	row     func(tokens []int32) []float32
	tokens  []int32
	prompt  int
	max     int
	said    string // what the text hooks let through
	stop    abi.StopReason
	whole   bool // every step reads the row, whatever it needs
	rows    int  // that were read
	warned  []*pipeline.Error
}

// next makes of the latest token the likeliest next one: its successor.
func next(tokens []int32) []float32 {
	row := make([]float32, vocab)
	for i := range row {
		row[i] = -float32((i + 3*vocab - int(tokens[len(tokens)-1]) - 1) % vocab)
	}
	return row
}

type setting func(o *pipeline.Options, p *sampling.Params)

// begin opens plugins over a prompt of token 10 alone, for a greedy text of at most 12
// tokens.
func begin(t testing.TB, plugins []*pipelinetest.Plugin, set ...setting) (*text, error) {
	t.Helper()
	x := &text{row: next, tokens: []int32{10}, prompt: 1}
	o := pipeline.Options{
		Plugins: pipelinetest.Specs(vocab, plugins...), Vocab: vocab, Seed: 7, Max: 12, Now: time.Now,
		Warn: func(e *pipeline.Error) { x.warned = append(x.warned, e) },
	}
	params := sampling.Params{Vocab: vocab, TopP: 1, Seed: 7}
	for _, f := range set {
		f(&o, &params)
	}
	o.Temperature = params.Temperature
	x.max = o.Max
	p, err := pipeline.New(o)
	x.Pipeline = p
	if err != nil {
		return x, err
	}
	t.Cleanup(p.Close)
	params.Plugins = p
	if x.chain, err = sampling.New(params); err != nil {
		t.Fatal(err)
	}
	p.Begin(x.tokens)
	return x, nil
}

// step makes one token; over tells that the text is.
func (x *text) step() (over bool, err error) {
	if err := x.Plan(); err != nil {
		return true, err
	}
	if x.stop = x.Stopped(); x.stop != 0 {
		return true, nil
	}
	row := x.row(x.tokens)
	in := &sampling.Input{Max: row[0]}
	for id, l := range row {
		if l > in.Max {
			in.Best, in.Max = int32(id), l
		}
	}
	need := x.chain.Needs()
	if x.whole {
		need = sampling.Needs{View: sampling.Row}
	}
	x.read(in, row, need)
	id, ok := x.NextForced()
	if ok {
		x.chain.Force(in, id, len(x.tokens), &x.scratch)
	} else {
		choice, err := x.chain.Choose(in, len(x.tokens), &x.scratch)
		if err != nil {
			return true, err
		}
		id = choice.ID
	}
	x.tokens = append(x.tokens, id)
	x.chain.Accept(id)
	v, err := x.Accept(id)
	if err == nil && v.Rewind == 0 && v.Stop == 0 {
		var out []byte
		out, v, err = x.Text([]byte{byte(id)}, len(x.tokens)-x.prompt == x.max)
		x.said += string(out)
	}
	if err != nil {
		return true, err
	}
	if n := v.Rewind; n > 0 {
		for i := range n {
			x.chain.Retract(x.tokens[len(x.tokens)-1-i])
		}
		x.tokens = x.tokens[:len(x.tokens)-n]
		if err := x.Rewind(n); err != nil {
			return true, err
		}
	}
	x.stop = v.Stop
	return x.stop != 0 || len(x.tokens)-x.prompt == x.max, nil
}

// read gives the chain what it needs of a row.
func (x *text) read(in *sampling.Input, row []float32, need sampling.Needs) {
	switch need.View {
	case sampling.Row:
		in.Row = row
		x.rows++
	case sampling.Top:
		for _, c := range sampling.AppendTop(nil, &sampling.Input{Row: row}, need.K) {
			in.IDs, in.Logits = append(in.IDs, c.ID), append(in.Logits, c.Logit)
		}
		if need.Stats {
			in.Stats = rowstats.Of(row)
		}
	}
}

// finish makes the whole text.
func (x *text) finish(t testing.TB) []int32 {
	t.Helper()
	for {
		over, err := x.step()
		if err != nil {
			t.Fatal(err)
		}
		if over {
			x.End(abi.StopStop)
			return x.tokens[x.prompt:]
		}
	}
}

// run makes a text with plugins.
func run(t testing.TB, plugins []*pipelinetest.Plugin, set ...setting) (*text, []int32) {
	t.Helper()
	x, err := begin(t, plugins, set...)
	if err != nil {
		t.Fatal(err)
	}
	return x, x.finish(t)
}

// fails makes a text until a plugin's failure ends it.
func (x *text) fails(t testing.TB) *pipeline.Error {
	t.Helper()
	for {
		over, err := x.step()
		var e *pipeline.Error
		if errors.As(err, &e) {
			return e
		}
		if err != nil || over {
			t.Fatalf("the text ended with %v, want a plugin's error", err)
		}
	}
}

func hooks(h abi.Hook, c pipelinetest.Code) map[abi.Hook]pipelinetest.Code {
	return map[abi.Hook]pipelinetest.Code{h: c}
}

// in makes a plugin of a slot with one hook.
func in(slot abi.Slot, h abi.Hook, c pipelinetest.Code) *pipelinetest.Plugin {
	return &pipelinetest.Plugin{Manifest: abi.Manifest{Name: "p-" + string(slot), Slot: slot}, Hooks: hooks(h, c)}
}

func one(p *pipelinetest.Plugin) []*pipelinetest.Plugin { return []*pipelinetest.Plugin{p} }
