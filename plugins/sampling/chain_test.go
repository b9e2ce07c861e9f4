package sampling

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func TestNeeds(t *testing.T) {
	plain := Params{Vocab: 1000, TopP: 1, Temperature: 1}
	with := func(f func(p *Params)) Params { p := plain; f(&p); return p }
	for name, c := range map[string]struct {
		p    Params
		said int // distinct tokens generated
		want Needs
	}{
		"greedy":                      {with(func(p *Params) { p.Temperature = 0 }), 3, Needs{View: Best}},
		"top_p 0":                     {with(func(p *Params) { p.TopP = 0 }), 0, Needs{View: Best}},
		"top_k 1":                     {with(func(p *Params) { p.TopK = 1 }), 0, Needs{View: Best}},
		"greedy with alternatives":    {with(func(p *Params) { p.Temperature, p.TopLogprobs = 0, 5 }), 0, Needs{View: Top, K: 5}},
		"greedy with a ban":           {with(func(p *Params) { p.Temperature, p.Suppressed = 0, []int32{1, 2} }), 0, Needs{View: Top, K: 3}},
		"one token, banned":           {with(func(p *Params) { p.Vocab, p.Temperature, p.Suppressed = 1, 0, []int32{0} }), 0, Needs{View: Top, K: 1}},
		"greedy with penalties":       {with(func(p *Params) { p.Temperature, p.PresencePenalty = 0, 1 }), 4, Needs{View: Top, K: 5}},
		"penalties, nothing said yet": {with(func(p *Params) { p.Temperature, p.PresencePenalty = 0, 1 }), 0, Needs{View: Best}},
		"greedy with a lift":          {with(func(p *Params) { p.Temperature, p.Bias = 0, []Bias{{1, 1}} }), 0, Needs{View: Row}},
		"negative penalty":            {with(func(p *Params) { p.TopK, p.PresencePenalty = 9, -1 }), 2, Needs{View: Row}},
		"top_k":                       {with(func(p *Params) { p.TopK = 40 }), 0, Needs{View: Top, K: 40}},
		"top_k of the vocabulary":     {with(func(p *Params) { p.Vocab, p.TopK = 30, 40 }), 0, Needs{View: Top, K: 30}},
		"large top_k":                 {with(func(p *Params) { p.Vocab, p.TopK = 1e6, 5000 }), 0, Needs{View: Row}},
		"plain":                       {plain, 0, Needs{View: Row}},
		"top_p":                       {with(func(p *Params) { p.TopP = .9 }), 0, Needs{View: Row}},
		"further stages":              {with(func(p *Params) { p.Temperature, p.Stages = 0, []Stage{suppressStage{1}} }), 0, Needs{View: Row}},
	} {
		c0, err := New(c.p)
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.said {
			c0.Accept(int32(i))
			c0.Accept(int32(i))
		}
		if got := c0.Needs(); got != c.want {
			t.Errorf("%s: needs %+v, want %+v", name, got, c.want)
		}
	}
}

func TestFurtherStagesRunBeforeTheTemperature(t *testing.T) {
	p := Params{Vocab: 3, Temperature: 0, TopP: 1, Bias: []Bias{{0, 3}}, Stages: []Stage{suppressStage{0}}}
	c, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Choose(inputOf([]float32{9, 1, 2}, c.Needs()), 0, new(Scratch))
	if err != nil || got.ID != 2 {
		t.Errorf("chose %d, %v, want 2", got.ID, err)
	}
}

func TestNewRefuses(t *testing.T) {
	good := Params{Vocab: 10, TopP: 1, Temperature: 1}
	for name, f := range map[string]func(p *Params){
		"no vocabulary":   func(p *Params) { p.Vocab = 0 },
		"top_k":           func(p *Params) { p.TopK = -1 },
		"temperature":     func(p *Params) { p.Temperature = -0.1 },
		"temperature NaN": func(p *Params) { p.Temperature = math.NaN() },
		"top_p":           func(p *Params) { p.TopP = 1.1 },
		"min_p":           func(p *Params) { p.MinP = math.NaN() },
		"penalty":         func(p *Params) { p.PresencePenalty = math.Inf(1) },
		"bias id":         func(p *Params) { p.Bias = []Bias{{10, 1}} },
		"bias value":      func(p *Params) { p.Bias = []Bias{{1, float32(math.NaN())}} },
		"alternatives":    func(p *Params) { p.TopLogprobs = -1 },
	} {
		p := good
		f(&p)
		if _, err := New(p); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := New(good); err != nil {
		t.Error(err)
	}
}

func TestLogitsThatAreNoNumbers(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for name, row := range map[string][]float32{
		"NaN": {nan, nan}, "+Inf": {inf, 1}, "-Inf": {-inf, -inf},
	} {
		for _, temperature := range []float64{0, 1} {
			for _, top := range []float64{0.5, 1} {
				c, err := New(Params{Vocab: 2, Temperature: temperature, TopP: top, MinP: 0.1, Bias: []Bias{{1, 1}}})
				if err != nil {
					t.Fatal(err)
				}
				if got, err := c.Choose(inputOf(row, c.Needs()), 0, new(Scratch)); !errors.Is(err, ErrNoCandidate) {
					t.Errorf("%s, temperature %g: chose %d, %v, want ErrNoCandidate", name, temperature, got.ID, err)
				}
			}
		}
	}
	c, _ := New(Params{Vocab: 3, Temperature: 1, TopP: 1})
	for pos := range 100 { // one NaN among numbers is never drawn
		if got, err := c.Choose(inputOf([]float32{nan, 1, 2}, c.Needs()), pos, new(Scratch)); err != nil || got.ID == 0 {
			t.Fatalf("chose %d, %v", got.ID, err)
		}
	}
}

// largeRow is a row as real models give them: most tokens far below a few.
func largeRow() []float32 {
	r := rand.New(rand.NewPCG(1, 2))
	row := make([]float32, 262144)
	for i := range row {
		row[i] = float32(r.NormFloat64() * 3)
	}
	return row
}

func TestChooseAllocatesNothing(t *testing.T) {
	row := largeRow()
	for name, p := range speedCases() {
		c, err := New(p)
		if err != nil {
			t.Fatal(err)
		}
		c.Accept(5)
		in, s := inputOf(row, c.Needs()), new(Scratch)
		pos := 0
		if n := testing.AllocsPerRun(10, func() {
			if _, err := c.Choose(in, pos, s); err != nil {
				t.Fatal(err)
			}
			pos++
		}); n != 0 {
			t.Errorf("%s: %g allocations per token", name, n)
		}
	}
}

func speedCases() map[string]Params {
	const v = 262144
	return map[string]Params{
		"plain":     {Vocab: v, Temperature: 1, TopP: 1},
		"top_p":     {Vocab: v, Temperature: 0.8, TopP: 0.95},
		"top_p hot": {Vocab: v, Temperature: 5, TopP: 0.95},
		"min_p":     {Vocab: v, Temperature: 1, TopP: 1, MinP: 0.05},
		"edits":     {Vocab: v, Temperature: 1, TopP: 0.9, PresencePenalty: 1, Bias: []Bias{{7, 1}}},
		"top_k 40":  {Vocab: v, Temperature: 1, TopP: 0.95, TopK: 40},
	}
}

func BenchmarkChoose(b *testing.B) {
	row := largeRow()
	for _, name := range []string{"plain", "top_p", "top_p hot", "min_p", "edits", "top_k 40"} {
		b.Run(name, func(b *testing.B) {
			c, err := New(speedCases()[name])
			if err != nil {
				b.Fatal(err)
			}
			c.Accept(5)
			in, s := inputOf(row, c.Needs()), new(Scratch)
			b.ReportAllocs()
			for pos := 0; b.Loop(); pos++ {
				if _, err := c.Choose(in, pos, s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func ExampleChain() {
	c, _ := New(Params{Vocab: 3, Temperature: 1, TopP: 0.9, Seed: 42})
	in := &Input{Best: 1, Max: 2, LogSumExp: 2.4076059, Row: []float32{0, 2, 1}}
	choice, _ := c.Choose(in, 10, new(Scratch))
	c.Accept(choice.ID)
	fmt.Printf("token %d, log-probability %.3f\n", choice.ID, choice.Logprob)
	// Output: token 1, log-probability -0.408
}

// TestNeedsAfter: what is asked for ahead of tokens that are not known yet is enough
// for them, whichever they are, and seeing more changes no choice.
func TestNeedsAfter(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	const vocab, ahead = 300, 6
	for range 300 {
		p := Params{Vocab: vocab, TopP: 1, Temperature: float64(rng.IntN(3)) / 2, TopK: rng.IntN(12), Seed: rng.Int64(), TopLogprobs: rng.IntN(3)}
		if rng.IntN(2) == 0 {
			p.FrequencyPenalty = 20 * rng.Float64()
		}
		if rng.IntN(3) == 0 {
			p.Bias = []Bias{{ID: 5, Value: -3}}
		}
		asked, early := mustChain(t, p), mustChain(t, p)
		var needs []Needs
		for i := range ahead {
			needs = append(needs, early.NeedsAfter(i))
		}
		row := make([]float32, vocab)
		for i := range row {
			row[i] = float32(rng.NormFloat64())
		}
		for i, n := range needs {
			var s1, s2 Scratch
			want, err1 := asked.Choose(inputOf(row, asked.Needs()), i, &s1)
			got, err2 := early.Choose(inputOf(row, n), i, &s2)
			if err1 != nil || err2 != nil || got != want {
				t.Fatalf("%+v: token %d is %v (%v) from %+v asked for ahead, %v (%v) from %+v", p, i, got, err2, n, want, err1, asked.Needs())
			}
			asked.Accept(want.ID)
			early.Accept(got.ID)
		}
	}
}

func mustChain(t *testing.T, p Params) *Chain {
	t.Helper()
	c, err := New(p)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
