package sampling

import (
	"math/rand/v2"
	"testing"
)

// asked is plugins that ask for the outcome at each place of a chain.
type asked struct {
	view     View
	top      int // candidates that they look at first; 0: none
	outcomes []int32
	came     int32
	forced   [2]int32
	act      func(d *Distribution, t float64) float64
}

func (a *asked) Needs(int) Needs { return Needs{View: a.view, K: 256, Stats: true} }
func (a *asked) ask(d *Distribution, t float64) {
	if a.top > 0 {
		d.Share(a.top)
	}
	before := state(d)
	id, ok := d.Outcome(t)
	if !ok {
		id = -1
	}
	if !alike(state(d), before) {
		panic("asking changed the distribution")
	}
	a.outcomes = append(a.outcomes, id)
}
func (a *asked) Early(d *Distribution, t float64) (float64, error) { a.ask(d, t); return t, nil }
func (a *asked) Late(d *Distribution, t float64) (float64, error) {
	a.ask(d, t)
	if a.act != nil {
		t = a.act(d, t)
		a.ask(d, t)
	}
	return t, nil
}
func (a *asked) Choose(d *Distribution, t float64) (int32, bool, error) {
	d.Settle()
	a.ask(d, t)
	return 0, false, nil
}
func (a *asked) Came(id int32)                { a.came = id }
func (a *asked) CameForced(id, instead int32) { a.forced = [2]int32{id, instead} }

// someParams are parameters of every kind.
func someParams(rng *rand.Rand, vocab int) Params {
	p := Params{Vocab: vocab, TopP: 1, Temperature: []float64{0, 0.3, 0.7, 1, 1, 1.5}[rng.IntN(6)], Seed: rng.Int64()}
	if rng.IntN(3) == 0 {
		p.TopK = 1 + rng.IntN(100)
	}
	if rng.IntN(3) == 0 {
		p.TopP = 0.5 + rng.Float64()/2
	}
	if rng.IntN(3) == 0 {
		p.MinP = rng.Float64() / 10
	}
	if rng.IntN(4) == 0 {
		p.PresencePenalty, p.Bias = 2, []Bias{{ID: 3, Value: 4}}
	}
	if rng.IntN(4) == 0 {
		p.Suppressed = []int32{1}
	}
	return p
}

// someRow is a row in steps, so that there are ties, of a model that is more or less sure.
func someRow(rng *rand.Rand, vocab int) []float32 {
	row := make([]float32, vocab)
	sure := 1 + 5*rng.Float64()
	for i := range row {
		row[i] = float32(int(rng.NormFloat64()*sure*32)) / 32
	}
	return row
}

// TestOutcome: where nothing acts, the outcome is the token that comes, at every place of the
// chain, whatever was looked at before; so is the one behind the last change.
func TestOutcome(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var s Scratch
	moved := 0
	for range 1500 {
		vocab := []int{5, 100, 1500, 5000}[rng.IntN(4)]
		p := someParams(rng, vocab)
		a := &asked{view: []View{Top, Row}[rng.IntN(2)], top: []int{0, 1, 40, 256}[rng.IntN(4)]}
		if rng.IntN(2) == 0 {
			a.act = func(d *Distribution, t float64) float64 {
				top := append([]Candidate(nil), d.Top(256)...)
				if err := d.Keep(top[:(len(top)+1)/2]); err != nil {
					panic(err)
				}
				return t * 0.9
			}
		}
		p.Plugins = a
		c := mustChain(t, p)
		c.Accept(2)
		row := someRow(rng, vocab)
		position := rng.IntN(1000)
		choice, err := c.Choose(inputOf(row, c.Needs()), position, &s)
		if err != nil {
			t.Fatal(err)
		}
		if a.came != choice.ID {
			t.Fatalf("token %d came, plugins heard of %d", choice.ID, a.came)
		}
		plain := p
		plain.Plugins = nil
		c = mustChain(t, plain)
		c.Accept(2)
		without, err := c.Choose(inputOf(row, c.Needs()), position, &s)
		if err != nil {
			t.Fatal(err)
		}
		for i, id := range a.outcomes {
			want := choice.ID
			if i < 2 {
				want = without.ID
			}
			if id != want {
				t.Fatalf("%+v, %d candidates seen: place %d says token %d, want %d", p, a.top, i, id, want)
			}
		}
		if choice.ID != without.ID {
			moved++
		}
	}
	if moved < 75 {
		t.Errorf("the plugin changed %d tokens: the test sees little", moved)
	}
}

// TestGlanceAgrees: a look at the best candidates says what a draw of all of them does, or
// that it cannot say, which is the exception.
func TestGlanceAgrees(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var s Scratch
	said, asked := 0, 0
	for range 8000 {
		vocab := []int{300, 1500, 5000}[rng.IntN(3)]
		p := someParams(rng, vocab)
		p.Temperature, p.PresencePenalty, p.Bias = []float64{0.2, 0.6, 0.9, 1, 1}[rng.IntN(5)], 0, nil
		if p.CutsToOne() {
			continue
		}
		c := mustChain(t, p)
		d := c.begin(inputOf(someRow(rng, vocab), Needs{View: Row}), rng.IntN(1000), &s)
		d.Share([]int{64, 256}[rng.IntN(2)])
		u := uniform(p.Seed, d.rest.position)
		all := d.aside()
		c.filter(all, p.Temperature)
		switch rng.IntN(8) {
		case 0:
			u = 0
		case 1: // on the edge of a bucket, where the rounding of masses decides
			h := all.histogram()
			sum := 0.0
			for _, m := range h.mass[:rng.IntN(h.last+1)+1] {
				sum += m
			}
			u = min(sum/h.total()*(1+1e-6*rng.NormFloat64()), 1-1e-9)
		}
		want, _ := draw(all, u)
		got, ok := c.glance(d, p.Temperature, u)
		asked++
		if !ok {
			continue
		}
		said++
		if got != want {
			t.Fatalf("%+v at %g: %v, want %v", p, u, got, want)
		}
	}
	if said < asked*5/10 {
		t.Errorf("a look was enough in %d of %d", said, asked)
	}
}

// TestForceTellsWhatWouldHaveCome: a forced token is told with the one in whose place it came.
func TestForceTellsWhatWouldHaveCome(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	var s Scratch
	for range 500 {
		p := someParams(rng, 300)
		row := someRow(rng, 300)
		plain, err := mustChain(t, p).Choose(inputOf(row, Needs{View: Row}), 9, &s)
		if err != nil {
			t.Fatal(err)
		}
		a := &asked{}
		p.Plugins = a
		in := inputOf(row, Needs{View: Row})
		if got := mustChain(t, p).Force(in, 77, 9, &s); got.ID != 77 || got.Logprob != Logprob(row[77], in.LogSumExp) {
			t.Fatalf("forced %+v", got)
		}
		if want := [2]int32{77, plain.ID}; a.forced != want {
			t.Fatalf("%+v: told %v, want %v", p, a.forced, want)
		}
	}
}

// TestOutcomeAllocatesNothing: nor does it where all candidates are looked at.
func TestOutcomeAllocatesNothing(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	row := someRow(rng, 5000)
	var s Scratch
	for name, p := range map[string]Params{
		"glance": {Vocab: 5000, TopP: 1, Temperature: 1},
		"all":    {Vocab: 5000, TopP: 1, Temperature: 1.5},
		"edits":  {Vocab: 5000, TopP: 0.9, Temperature: 0.8, Bias: []Bias{{ID: 3, Value: 1}}},
	} {
		c := mustChain(t, p)
		in := inputOf(row, Needs{View: Row})
		position := 0
		step := func() {
			d := c.begin(in, position, &s)
			d.Share(256)
			d.Outcome(p.Temperature)
			position++
		}
		for range 50 {
			step()
		}
		if n := testing.AllocsPerRun(200, step); n != 0 {
			t.Errorf("%s: %g allocations", name, n)
		}
	}
}

// BenchmarkOutcome is what telling a plugin's doing costs a step in which it acts.
func BenchmarkOutcome(b *testing.B) {
	rng := rand.New(rand.NewPCG(11, 12))
	for name, p := range map[string]Params{
		"glance": {Vocab: 262144, TopP: 1, Temperature: 1},
		"cold":   {Vocab: 262144, TopP: 0.95, Temperature: 0.7},
		"all":    {Vocab: 262144, TopP: 1, Temperature: 1.5},
	} {
		b.Run(name, func(b *testing.B) {
			row := make([]float32, p.Vocab)
			for i := range row {
				row[i] = float32(rng.NormFloat64() * 1.8)
			}
			for i := range 12 {
				row[1000*i] = 16 - float32(i)/2
			}
			c, err := New(p)
			if err != nil {
				b.Fatal(err)
			}
			var s Scratch
			d := c.begin(inputOf(row, Needs{View: Row}), 0, &s)
			d.Share(256)
			for position := 0; b.Loop(); position++ {
				d.rest.position = position
				d.Outcome(p.Temperature)
			}
		})
	}
}
